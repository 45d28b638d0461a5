"""What is left to do before a release can be signed, with links and counts."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count

from evalsite.common.formatting import counted
from evalsite.web.gate_found import GateFound
from evalsite.web.gate_words import RATES
from reviews.core.gate.model import Check, CheckKind, Section
from reviews.core.gate.states import CheckResult
from reviews.core.gate.threshold_words import check_name
from reviews.models import Case, CaseState, Dispute, DisputeState
from traces.web.addresses import Addresses, address
from traces.web.asking import uuid_of
from traces.web.pages import Link
from traces.web.pages.gates import GateRun, GateTask
from traces.web.rows import action_words

NOTHING = "Nothing is left to do: the evidence decides every check."
_OPEN_SAMPLE = RATES | {CheckKind.FEWEST_TRIALS}


@dataclass(frozen=True, slots=True)
class WaitingWork:
    """Open cases by their next action, and open disputes that decide something."""

    cases: tuple[tuple[str, str, int], ...]  # action, who works it, how many
    n_disputes: int


def waiting_work(system_pk: int, release_pk: int) -> WaitingWork:
    """What waits for people on a release, in two queries."""
    cases = (
        Case.objects.filter(system=system_pk, release=release_pk, state=CaseState.OPEN.value)
        .values_list("action", "worked_by")
        .annotate(n=Count("pk"))
        .order_by("-n", "action")
    )
    n_disputes = Dispute.objects.filter(
        system=system_pk, release=release_pk, state=DisputeState.OPEN.value, decides=True
    ).count()
    return WaitingWork(tuple(cases), n_disputes)


def gate_todo(
    found: GateFound, work: WaitingWork, runs: tuple[GateRun, ...], at: Addresses
) -> tuple[GateTask, ...]:
    """The work before sign-off: what blocks first, then what people decide, then more evidence."""
    release = found.release.uuid
    tasks = [*_blocking(found, at)]
    if work.n_disputes:
        tasks.append(
            GateTask(
                f"Decide {counted(work.n_disputes, 'dispute')}",
                "verdicts that disagree and decide a trial; for reviewers",
                Link("Open disputes", address(at.disputes, {"deciding": "1", "release": release})),
            )
        )
    tasks += [
        GateTask(
            f"{action_words(action).capitalize()}: {counted(n, 'case')}",
            f"for {worker}s",
            Link("Show cases", address(at.cases, {"action": action, "release": release})),
        )
        for action, worker, n in work.cases
        if action != "adjudicate" or not work.n_disputes
    ]
    tasks += [*_evidence(found, at), *_unconfirmed(runs)]
    if found.other is not None and found.other.is_later:
        tasks.append(
            GateTask(
                "Thresholds, tiers or contracts came later",
                "An owner may let them count; both results stand below.",
                Link("Compare", "#other-result"),
            )
        )
    return tuple(tasks)


def _blocking(found: GateFound, at: Addresses) -> list[GateTask]:
    rows = []
    for section, check in _checks(found):
        tier = uuid_of(section.tier_uuid)
        if check.result is CheckResult.NOT_MET and tier:
            href = at.gate_check(found.release.uuid, tier, check.threshold.kind.value)
            rows.append(
                GateTask(
                    f"{check_name(check.threshold)} is not met",
                    "No open trial can change that. Mend it in a new release, or reject this one.",
                    Link("Look at the trials", href),
                )
            )
    return rows


def _evidence(found: GateFound, at: Addresses) -> list[GateTask]:
    tasks = []
    for section, check in _checks(found):
        if check.result is not CheckResult.CANNOT_TELL:
            continue
        kind = check.threshold.kind
        tier = uuid_of(section.tier_uuid)
        of = f" of tier {section.tier}" if section.tier else ""
        if kind is CheckKind.DECLARED:
            tasks.append(
                GateTask(
                    f"Bring the missing declared trials{of}",
                    check.settles,
                    Link("Show runs", "#runs"),
                )
            )
        elif kind is CheckKind.JUDGE_CALIBRATION:
            tasks.append(
                GateTask(f"Calibrate judges{of}", check.settles, Link("Show judges", at.judges))
            )
        elif kind in _OPEN_SAMPLE and check.n_more and tier:
            plan = address(at.sample_plan, {"tier": tier, "release": found.release.uuid})
            tasks.append(
                GateTask(
                    f"Run {counted(check.n_more, 'more trial')} for "
                    f"“{check_name(check.threshold)}”{of}",
                    check.settles,
                    Link("Plan", plan),
                )
            )
    return tasks


def _unconfirmed(runs: tuple[GateRun, ...]) -> list[GateTask]:
    n = sum(run.state == "left-out" and not run.confirmed_by for run in runs)
    if not n:
        return []
    return [
        GateTask(
            f"Confirm {counted(n, 'run')} left out",
            "A second owner confirms it, or it counts as declared trials that are missing.",
            Link("Show runs", "#runs"),
        )
    ]


def _checks(found: GateFound) -> list[tuple[Section, Check]]:
    sections = found.gate.sections if found.gate else ()
    return [(section, check) for section in sections for check in section.checks]
