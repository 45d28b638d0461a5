"""Submitted decisions whose time to be taken back is over become final, once.

A worker does it by a hint, the sweeper after a lost one, and the next page of their author: whoever
comes first. The draft's row parts them, and it goes in the transaction that decides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from django.db import OperationalError, transaction

from evalsite.after_adjudication import finish_adjudication
from evalsite.after_label import finish_label
from reviews.models import DraftPurpose, ReviewDraft
from reviews.selectors.review_drafts import due_drafts
from reviews.services.review_drafts import DraftRefusedError, refuse_draft, take_due
from traces.models import User

log = logging.getLogger("evalsite.held_decisions")

Finish = Callable[[ReviewDraft, datetime], None]
"""Decides what a draft says, at that time. Raises `DraftRefusedError` where it cannot."""


_FINISH: Mapping[DraftPurpose, Finish] = {
    DraftPurpose.ADJUDICATE: finish_adjudication,
    DraftPurpose.LABEL: finish_label,
}


def finish_due(now: datetime, user: User | None = None) -> int:
    """Make the submitted drafts final whose time has come, of one person or of everybody.

    Returns how many are final by this. One that is refused keeps its text and says why; one that
    the database does not let through now stays due, and a worker tries again.
    """
    return sum(_finished(pk, now) for pk in due_drafts(now=now, by=user))


def _finished(draft_pk: int, now: datetime) -> bool:
    try:
        return finish_draft(draft_pk, now=now)
    except OperationalError as error:  # a deadlock: the others went on
        extra = {"draft": draft_pk, "cause": type(error).__name__}
        log.warning("submitted decision waits for the database", extra=extra)
        return False


@transaction.atomic
def finish_draft(draft_pk: int, *, now: datetime) -> bool:
    """Make one submitted draft final if its time has come; False where there is nothing to do."""
    draft = take_due(draft_pk, now=now)
    if draft is None:
        return False
    extra = {"draft": draft.pk, "purpose": draft.purpose}
    try:
        with transaction.atomic():
            _FINISH[DraftPurpose(draft.purpose)](draft, now)
    except DraftRefusedError as error:
        refuse_draft(draft, str(error), now=now)
        log.info("submitted decision refused", extra=extra)
        return False
    draft.delete()
    log.info("submitted decision final", extra=extra)
    return True
