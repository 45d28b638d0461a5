"""Whether a release may go out: thresholds, checks, gates, and what a signature covers."""
