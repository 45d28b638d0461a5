"""How far the work on a preview is, of rules and of contracts alike."""

from __future__ import annotations

from traces.models import BackgroundWork, WorkState
from traces.selectors.rules_work import percent_done
from traces.web import pages
from traces.web.rule_rows import work_badge


def preview_work(
    preview: BackgroundWork, *, is_known: bool, what: str, so_far: str
) -> pages.Work | None:
    """The work on a preview; None once its result is known.

    `what` is previewed: "the change". `so_far` says in a sentence how much is done.
    """
    state = WorkState(preview.state)
    if state is WorkState.DONE:
        if is_known:
            return None
        failure = f"Another version of the product made this preview. Preview {what} again."
        return pages.Work(
            "", "", work_badge(WorkState.FAILED), None, is_moving=False, failure=failure
        )
    return pages.Work(
        heading="",
        sentence="It waits for a worker." if state is WorkState.WAITING else so_far,
        badge=work_badge(state),
        percent=percent_done(preview.n_done, preview.n_total) if preview.is_open else None,
        is_moving=preview.is_open,
        failure=preview.failure,
    )
