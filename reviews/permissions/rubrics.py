"""Who may write a rubric. The answer is "" or the sentence that says why not."""

from __future__ import annotations

from traces.models import Role

NOT_A_WRITER = "Only an engineer or a reviewer of this system writes rubrics."
_WRITERS = frozenset({Role.ENGINEER, Role.REVIEWER})


def rubric_refusal(role: Role | None) -> str:
    """Why somebody of that role may not write a rubric; "" when they may."""
    return "" if role in _WRITERS else NOT_A_WRITER
