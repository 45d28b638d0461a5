"""The evidence behind one check of a gate."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from evalsite.access import SystemRequest
from evalsite.common.formatting import counted
from evalsite.signing import SigningView
from evalsite.web.gate_found import GateFound, gate_head, gate_view
from evalsite.web.gate_rows import GateView, gate_section
from evalsite.web.gate_words import RESULTS
from reviews.core.gate.model import Check, CheckKind, Section
from reviews.core.gate.states import CheckResult
from reviews.core.gate.threshold_words import check_name
from traces.models import Trial
from traces.selectors.trial_list import TrialScope
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import uuid_of
from traces.web.pages import Link, TrialRow
from traces.web.pages.gates import GateCheckPage
from traces.web.rows import trial_label
from traces.web.shell import system_shell

MOST_DETAILS = 200
_LISTS: dict[CheckKind, tuple[tuple[str, dict[str, Value]], ...]] = {
    CheckKind.OUTCOME_RATE: (
        ("Outcome not reached", {"outcome": "fail"}),
        ("Outcome not decided", {"outcome": "unknown"}),
        ("Outcome reached", {"outcome": "pass"}),
    ),
    CheckKind.RULE_CLEAN_RATE: (
        ("Not rule-clean", {"clean": "fail"}),
        ("Not decided", {"clean": "unknown"}),
        ("Rule-clean", {"clean": "pass"}),
    ),
    CheckKind.PASS_HAT_K: (("Not rule-clean", {"clean": "fail"}),),
    CheckKind.UNRESOLVED: (("Unresolved", {"disposition": "unresolved"}),),
    CheckKind.HARNESS_ERRORS: (("Harness errors", {"disposition": "harness_error"}),),
    CheckKind.RECOVERY_RATE: (("With an injected fault", {"scope": TrialScope.FAULT.value}),),
}
_WORST_FIRST = (
    CheckResult.NOT_MET,
    CheckResult.CANNOT_TELL,
    CheckResult.MET,
    CheckResult.DOES_NOT_APPLY,
)


def check_page(
    request: SystemRequest, found: GateFound, signing: SigningView, *, tier: UUID, kind: str
) -> GateCheckPage | None:
    """One check with its parts and trials; None where the gate has no such check."""
    place = _placed(found, tier, kind)
    if place is None:
        return None
    section, check, n = place
    at = Addresses.of(request.access.system.slug)
    view = replace(gate_view(request, found, n_trials=0), n_details=MOST_DETAILS)
    shown = gate_section(section, n, view)
    row = next(row for row, each in zip(shown.checks, section.checks, strict=True) if each is check)
    rows = _rows(request, check, at)
    head = gate_head(request, found, signing, tab=check_name(check.threshold))
    return GateCheckPage(
        shell=system_shell(request.access, section="Releases"),
        head=head,
        check=replace(row, evidence=None, trials=()),
        section=shown,
        thresholds=Link("Thresholds", shown.thresholds_url),
        rows=rows,
        rows_words=_rows_words(check, len(rows)),
        lists=_lists(found, check, at),
        others=_others(section, check, view),
    )


def _placed(found: GateFound, tier: UUID, kind: str) -> tuple[Section, Check, int] | None:
    for n, section in enumerate(found.gate.sections if found.gate else (), start=1):
        for check in section.checks:
            if section.tier_uuid == str(tier) and check.threshold.kind == kind:
                return section, check, n
    return None


def _rows(request: SystemRequest, check: Check, at: Addresses) -> tuple[TrialRow, ...]:
    """The trials that a check names, in its order, in one query."""
    wanted = [uuid for text in check.trials if (uuid := uuid_of(text))]
    trials = (
        Trial.objects.select_related("task", "release", "run", "disposition")
        .defer("release__details", "run__details")
        .filter(system=request.access.system, uuid__in=wanted)
    )
    by_uuid = {trial.uuid: trial for trial in trials}
    return tuple(_row(by_uuid[uuid], at) for uuid in wanted if uuid in by_uuid)


def _row(trial: Trial, at: Addresses) -> TrialRow:
    decided = getattr(trial, "disposition", None)
    value = decided.value if decided else "unresolved"
    failed = ", ".join(decided.failed[:3]) if decided else ""
    return TrialRow(
        label=trial_label(trial.label, trial.attempt),
        href=at.trial(trial.uuid),
        task=Link(trial.task.task_id, at.task(trial.task.uuid)),
        release=Link(trial.release.label, at.release(trial.release.uuid)),
        run=Link(trial.run.name, at.run(trial.run.uuid)),
        disposition=value.replace("_", "-"),
        detail=f"failed: {failed}" if failed else "",
        n_steps=trial.n_messages,
        n_tool_calls=trial.n_tool_calls,
        n_rejected=trial.n_rejected,
        cost_usd=trial.cost_usd,
        seconds=trial.seconds,
        at=trial.started_at,
    )


def _rows_words(check: Check, n: int) -> str:
    if not n:
        return "This check names no single trial."
    which = {
        CheckResult.NOT_MET: "that keep it from being met",
        CheckResult.CANNOT_TELL: "that nothing decides yet, or that count against it",
    }.get(check.result, "that stand nearest to the threshold")
    return f"{counted(n, 'trial')} to look at first: those {which}."


def _lists(found: GateFound, check: Check, at: Addresses) -> tuple[Link, ...]:
    kept: dict[str, Value] = {"release": found.release.uuid}
    figures: dict[str, Value] = {**kept, "scope": TrialScope.FIGURES.value}
    named = _LISTS.get(check.threshold.kind, ())
    lists = [Link(label, address(at.trials, {**figures, **more})) for label, more in named]
    if check.threshold.kind in (CheckKind.PROHIBITED, CheckKind.PROHIBITED_RATE):
        lists.append(
            Link("With a prohibited attempt", address(at.trials, {**figures, "prohibited": "1"}))
        )
    return (*lists, Link("All trials of the release", address(at.trials, kept)))


def _others(section: Section, check: Check, view: GateView) -> tuple[Link, ...]:
    tier = uuid_of(section.tier_uuid)
    if tier is None:
        return ()
    others = sorted(
        (each for each in section.checks if each is not check),
        key=lambda each: _WORST_FIRST.index(each.result),
    )
    return tuple(
        Link(
            f"{check_name(each.threshold)}: {RESULTS[each.result].label}",
            view.at.gate_check(view.release, tier, each.threshold.kind.value),
        )
        for each in others
    )
