"""Text addressed to graders and reviewers, as `traces.core.addressed` finds it.

Transcripts are shown by `traces`, which knows nothing of reviews, so the finding is done there.
"""

from traces.core.addressed import Hint, HintKind, addressed_text

__all__ = ["Hint", "HintKind", "addressed_text"]
