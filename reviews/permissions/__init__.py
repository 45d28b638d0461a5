"""Who may do what with reviews: each refusal is a sentence for people, "" allows."""
