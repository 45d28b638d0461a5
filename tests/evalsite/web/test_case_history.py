from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.after_review import add_evidence_to, mark_and_decide, withdraw_and_decide
from evalsite.web.case_history import moments_of
from reviews.core.disposition import Mark
from reviews.models import Case, CaseEventKind
from reviews.selectors.case_history import HistoryEvent
from reviews.selectors.cases import ListedCase, case_of
from reviews.services.cases import assign_cases, set_aside, set_due, take_up
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import root, visit
from traces.core.additions import Addition
from traces.models import Trial

pytestmark = pytest.mark.django_db

TODAY = date(2026, 12, 1)
AT = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)


def listed(cast: Cast) -> ListedCase:
    ingest(cast.system, [record("t1", 0, verdicts=[verdict("unknown")])])
    found = case_of(cast.system.pk, Case.objects.get().uuid)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "text", "detail", "what", "said"),
    [
        pytest.param("opened", "Why.", {}, "The case opened again. Why.", "", id="opened"),
        pytest.param("closed", "Why.", {}, "The case closed by itself. Why.", "", id="closed"),
        pytest.param("set_aside", "Known.", {}, "set the case aside", "Known.", id="aside"),
        pytest.param("taken_up", "", {}, "took the case up again", "", id="taken up"),
        pytest.param("assigned", "", {}, "took the assignment away", "", id="nobody"),
        pytest.param("assigned", "Ada", {}, "took the case", "", id="oneself"),
        pytest.param("assigned", "Bob", {}, "assigned the case to Bob", "", id="another"),
        pytest.param("due", "", {}, "took the due date away", "", id="no date"),
        pytest.param("due", "2026-12-02", {}, "set the due date: tomorrow", "", id="date"),
        pytest.param("comment", "Hello.", {}, "commented", "Hello.", id="comment"),
        pytest.param("rerun_asked", "Why.", {}, "asked for a rerun", "Why.", id="rerun"),
        pytest.param(
            "evidence",
            "Why.",
            {"parts": ["final_state", "facts"]},
            "added evidence (final state, facts)",
            "Why.",
            id="evidence",
        ),
        pytest.param("evidence", "Why.", {}, "added evidence", "Why.", id="evidence, no parts"),
        pytest.param(
            "marked",
            "Why.",
            {"criterion": "tone", "mark": "defective", "is_held": True},
            "marked tone as defective",
            "Why.",
            id="marked",
        ),
        pytest.param(
            "marked",
            "Why.",
            {"criterion": "", "mark": "defective", "is_held": False},
            "withdrew the mark on the fixture",
            "Why.",
            id="withdrawn",
        ),
        pytest.param(
            "verdict",
            "gave pass on tone: Polite: yes.",
            {"criterion": "tone", "value": "pass"},
            "said pass on tone",
            "Polite: yes.",
            id="verdict",
        ),
        pytest.param(
            "verdict",
            "corrected fail on tone: Rude.",
            {"criterion": "tone", "value": "fail"},
            "corrected the verdict: fail on tone",
            "Rude.",
            id="corrected",
        ),
        pytest.param("verdict", "Odd.", {}, "gave a verdict", "Odd.", id="other verdict"),
    ],
)
def test_each_event_is_told_in_words(
    kind: str, text: str, detail: dict[str, Any], what: str, said: str, cast: Cast
) -> None:
    event = HistoryEvent(1, CaseEventKind(kind), text, detail, "Ada", AT)

    first, told = moments_of(listed(cast), [event], today=TODAY)

    assert (told.what, told.text, told.by, told.at, told.kind) == (what, said, "Ada", AT, kind)
    assert first.what == "The case opened"


def test_a_history_begins_where_the_case_first_opened(cast: Cast) -> None:
    event = HistoryEvent(1, CaseEventKind.CLOSED, "x", {"opened_at": AT.isoformat()}, "", AT)

    first, _ = moments_of(listed(cast), [event], today=TODAY)

    assert first.at == AT


def test_everything_done_to_a_case_stands_in_one_line_of_time(client: Client, cast: Cast) -> None:
    listed(cast)
    case, trial = Case.objects.get(), Trial.objects.select_related("task__system").get()
    now = timezone.now()
    assign_cases([case], to=cast.engineer, by=cast.owner, now=now)
    set_due(case, now.date(), by=cast.engineer, now=now)
    set_aside(case, reason="Known.", by=cast.engineer, now=now)
    take_up(case, by=cast.reviewer, now=now)
    mark = mark_and_decide(
        trial, criterion="outcome", mark=Mark.AMBIGUOUS, reason="Odd.", by=cast.reviewer, now=now
    )
    withdraw_and_decide(mark, reason="Fine.", by=cast.reviewer, now=now)
    add_evidence_to(
        trial, Addition(tokens=3), source="log", reason="Lost.", by=cast.engineer, now=now
    )

    page = visit(client, cast.viewer, f"{root(cast.system)}cases/{case.uuid}/")

    assert [(moment.by, moment.what, moment.text) for moment in page.history] == [
        ("", "The case opened", ""),
        ("owner", "assigned the case to engineer", ""),
        ("engineer", "set the due date: today", ""),
        ("engineer", "set the case aside", "Known."),
        ("reviewer", "took the case up again", ""),
        ("reviewer", "marked outcome as ambiguous", "Odd."),
        ("reviewer", "withdrew the mark on outcome", "Fine."),
        ("engineer", "added evidence (tokens)", "Lost."),
    ]
    (addition,) = page.additions
    assert (addition.name, addition.value[:8]) == ("tokens", "from log")
