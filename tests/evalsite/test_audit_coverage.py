"""Each act of a person is one event: no service that acts for somebody goes without."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest
from django.utils import timezone

from evalsite.after_review import (
    add_evidence_to,
    mark_and_decide,
    verdict_and_decide,
    withdraw_and_decide,
)
from evalsite.audit.words import ACTS, KINDS
from evalsite.models import AuditEvent
from reviews.core.disposition import Mark
from reviews.models import Case, CheckMark, Flag, Verdict
from reviews.services.cases import (
    assign_cases,
    comment_on_case,
    set_aside,
    set_due,
    take_up,
)
from reviews.services.flags import close_flags, flag_trial
from reviews.services.rubrics import write_version
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.core.additions import Addition
from traces.core.records import VerdictValue
from traces.models import Release, Role, Trial
from traces.services.families import change_split
from traces.services.work import declare_run

ROOT = Path(__file__).resolve().parents[2]

NO_ACTS = {
    "prepare_adjudication": "writes nothing",
    "check_mark": "writes nothing",
    "note_on_trial": "part of an act that is recorded",
    "note_on_task": "part of an act that is recorded",
    "read_calibrations": "follows from an act; by hand it is `read_by_hand`",
    "readings_of": "follows from an act; by hand it is `read_by_hand`",
    "take_seat": "a reservation",
    "extend_seat": "a reservation",
    "hold_seat": "a reservation",
    "skip_item": "ends a reservation",
    "own_seat": "a reservation",
    "check_room": "writes nothing",
    "label_drafts": "writes nothing",
    "submit_label": "a draft until it is final",
    "draft_contracts": "a draft until it is proposed",
    "start_preview": "a draft until it is proposed",
    "preview_again": "a draft until it is proposed",
    "start_takeover": "part of the approval",
    "release_named": "part of an upload",
    "store_sign_off": "recorded by `evalsite.signing`",
    "store_void": "recorded by `evalsite.signing`",
}
"""Services that record nothing themselves, with the reason."""

SERVICES = sorted(
    path
    for folder in ("traces/services", "reviews/services")
    for path in (ROOT / folder).glob("*.py")
)


def acts_of(path: Path) -> Iterator[tuple[str, bool]]:
    """The public functions of a module that take `by`, and whether they come to record an event."""
    functions = {
        node.name: node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    calls = {
        name: {
            each.func.id
            for each in ast.walk(node)
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
        }
        for name, node in functions.items()
    }

    def records(name: str, seen: frozenset[str]) -> bool:
        found = calls.get(name, set())
        return "record" in found or any(
            records(each, seen | {each}) for each in found - seen if each in calls
        )

    for name, node in functions.items():
        names = {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
        if "by" in names and not name.startswith("_"):
            yield name, records(name, frozenset({name}))


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: "/".join(path.parts[-3:]))
def test_a_service_that_acts_for_somebody_records_it(path: Path) -> None:
    silent = [name for name, has_event in acts_of(path) if not has_event]
    assert [name for name in silent if name not in NO_ACTS] == []


def test_no_service_is_excused_without_need() -> None:
    silent = {name for path in SERVICES for name, has_event in acts_of(path) if not has_event}
    assert set(NO_ACTS) - silent == set()


_ACT = re.compile(r'"([a-z_]+\.[a-z_]+)"')
_RECORDS = re.compile(r"\b_?record\w*\(\s*\n?\s*(?:f?\"[^\"]+\"[^,]*|[a-z_]+),")


def test_every_act_has_words_and_a_kind() -> None:
    named = {
        act
        for folder in ("traces/services", "reviews/services", "evalsite")
        for path in (ROOT / folder).rglob("*.py")
        for call in _RECORDS.findall(path.read_text())
        for act in _ACT.findall(call)
    }
    of_the_site = {"sign_in", "sign_out", "account", "audit_log"}
    missing = {act for act in named if act not in ACTS and act.split(".")[0] not in of_the_site}
    assert missing == set()
    kinds = {f"{act.split('.')[0]}." for act in ACTS} - {"account."}
    assert kinds == set(KINDS)


@pytest.mark.django_db
def test_each_act_is_exactly_one_event_and_the_same_again_is_none(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, verdicts=[verdict("pass"), verdict("unknown", criterion="tone")]),
            record("t2", 0, verdicts=[verdict("error")]),
        ],
    )
    now = timezone.now()
    trial = Trial.objects.get(task__task_id="t1")
    case = Case.objects.select_related("trial").get(trial__task__task_id="t2")
    members = cast.members()
    worker = members.get(Role(case.worked_by), cast.reviewer)
    release = Release.objects.get(system=cast.system)
    engineer, reviewer = cast.engineer, cast.reviewer

    def given(value: VerdictValue, **more: object) -> Verdict:
        return verdict_and_decide(
            trial, criterion="tone", value=value, reason="Read.", steps=[1], by=reviewer, now=now,
            **more,  # type: ignore[arg-type]
        )  # fmt: skip

    def added() -> object:
        return add_evidence_to(
            trial, Addition(final_state={"a": 1}), source="api", reason="It lacked.",
            by=engineer, now=now,
        )  # fmt: skip

    def newest_flag() -> list[Flag]:
        return [Flag.objects.filter(by=cast.viewer).latest("pk")]

    acts: list[tuple[str, Callable[[], object]]] = [
        ("run.declared", lambda: declare_run(release, "r2", trials=2, by=engineer, now=now)),
        ("evidence.added", added),
        ("", added),
        ("verdict.given", lambda: given(VerdictValue.PASS)),
        ("", lambda: given(VerdictValue.PASS)),
        (
            "verdict.corrected",
            lambda: given(VerdictValue.FAIL, corrects=Verdict.objects.get(by=reviewer)),
        ),
        (
            "mark.made",
            lambda: mark_and_decide(
                trial, criterion="outcome", mark=Mark.DEFECTIVE, reason="Wrong.", by=reviewer,
                now=now,
            ),
        ),
        (
            "mark.withdrawn",
            lambda: withdraw_and_decide(
                CheckMark.objects.get(), reason="Right.", by=reviewer, now=now
            ),
        ),
        ("flag.raised", lambda: flag_trial(trial, reason="Look.", by=cast.viewer, now=now)),
        (
            "flag.closed",
            lambda: close_flags(newest_flag(), reason="Looked.", by=reviewer, now=now),
        ),
        ("case.assigned", lambda: assign_cases([case], to=worker, by=reviewer, now=now)),
        ("", lambda: assign_cases([case], to=worker, by=reviewer, now=now)),
        ("case.due_set", lambda: set_due(case, date(2199, 1, 1), by=reviewer, now=now)),
        ("case.commented", lambda: comment_on_case(case, "Hm.", by=cast.viewer, now=now)),
        ("case.set_aside", lambda: set_aside(case, reason="Later.", by=reviewer, now=now)),
        ("case.taken_up", lambda: take_up(case, by=reviewer, now=now)),
        (
            "rubric.written",
            lambda: write_version(
                cast.system, name="tone", version="1", text="Kind?", reason="New.", by=reviewer,
                now=now,
            ),
        ),
        (
            "task.split_changed",
            lambda: change_split(
                cast.system, split="tuning", reason="To tune.", by=engineer, now=now,
                task=trial.task,
            ),
        ),
    ]  # fmt: skip
    log = AuditEvent.objects.filter(system=cast.system)
    for expected, act in acts:
        before = log.count()
        act()
        made = list(log.order_by("seq").values_list("act", flat=True)[before:])
        assert made == ([expected] if expected else []), expected
