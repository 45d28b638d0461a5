"""What changed since the last signed release: flips, paths, tools, judges, contracts, thresholds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from django.db import connection

from evalsite.access import SystemRequest
from evalsite.common.formatting import counted
from evalsite.web.gate_found import GateFound, gate_of
from reviews.core.gate.threshold_words import listed
from reviews.selectors.sign_offs import signed_release
from traces.core.paths import PathLevel
from traces.models import ContractVersion, Release, Task
from traces.selectors.release_comparison import (
    ComparedReleases,
    ComparedTask,
    Flip,
    ReleaseComparison,
    release_comparison,
)
from traces.web.addresses import Addresses, address
from traces.web.levels import ChosenLevel
from traces.web.pages import Link
from traces.web.pages.gates import GateChange, GateSince

LISTED = 6
READ_TASKS = 200  # of the changed ones, flips first
_NONE_SIGNED = (
    "No other release of this system is signed: there is nothing to compare with, and the "
    "regression check does not apply."
)


def gate_since(request: SystemRequest, found: GateFound) -> GateSince:
    """The release against its baseline. A fixed number of queries."""
    if found.baseline is None:
        return GateSince(sentence=_NONE_SIGNED)
    system = request.access.system
    before = Release.objects.select_related("gate").filter(system=system, uuid=found.baseline)
    then = before.first()
    if then is None:
        return GateSince(sentence=_NONE_SIGNED)
    at = Addresses.of(system.slug)
    chosen = ChosenLevel.of({}, default=PathLevel.SEQUENCE)
    compared = release_comparison(
        ComparedReleases(system.pk, found.release.pk, then.pk, system.shown_rules_id, chosen.key),
        n=READ_TASKS,
    )
    now_contracts, then_contracts = (
        set(signed_release(pk)[0].contracts) for pk in (found.release.pk, then.pk)
    )
    changes = (
        _flips("Flips to fail", Flip.TO_FAIL, compared, compared.n_to_fail, at, found, then.uuid),
        _flips("Flips to pass", Flip.TO_PASS, compared, compared.n_to_pass, at, found, then.uuid),
        _paths(compared),
        _tools(compared),
        _judges(found.release.pk, then.pk),
        _contracts(now_contracts, then_contracts),
        _thresholds(found, gate_of(then)),
    )
    name = found.baseline_name or then.label
    return GateSince(
        sentence=f"{counted(compared.n_tasks, 'task')} of the same version ran in both.",
        baseline=Link(f"release {name}", at.gate(then.uuid)),
        signature=Link("signatures", at.signatures(then.uuid)),
        changes=changes,
        link=Link(
            "Compare task by task",
            address(at.release(found.release.uuid), {"against": then.uuid}, place="#comparison"),
        ),
    )


def _flips(
    label: str,
    flip: Flip,
    compared: ReleaseComparison,
    n: int,
    at: Addresses,
    found: GateFound,
    then: UUID,
) -> GateChange:
    tasks = [task for task in compared.tasks if task.flip is flip]
    if not n:
        return GateChange(label, "none")
    both = [str(then), str(found.release.uuid)]
    return GateChange(
        label,
        f"{counted(n, 'task')}{_by_family(tasks)}",
        tuple(
            Link(task.task_id, address(at.task(task.uuid), {"release": both}))
            for task in tasks[:LISTED]
        ),
        max(n - LISTED, 0),
        "fail" if flip is Flip.TO_FAIL else "",
    )


def _by_family(tasks: Iterable[ComparedTask]) -> str:
    pks = [task.pk for task in tasks]
    families = Counter(
        family or "no family"
        for family in Task.objects.filter(pk__in=pks).values_list("family", flat=True)
    )
    if not families:
        return ""
    words = [
        f"{family} {n:,}" for family, n in sorted(families.items(), key=lambda x: (-x[1], x[0]))
    ]
    shown = words if len(words) <= LISTED else [*words[:LISTED], f"{len(words) - LISTED:,} more"]
    return f": {listed(shown)}"


def _paths(compared: ReleaseComparison) -> GateChange:
    if not compared.n_new and not compared.n_gone:
        return GateChange("Passing paths", "the same ones")
    return GateChange(
        "Passing paths", f"{compared.n_new:,} new, {compared.n_gone:,} no longer taken"
    )


def _tools(compared: ReleaseComparison) -> GateChange:
    if not compared.n_tools_new and not compared.n_tools_gone:
        return GateChange("Tools", "the same ones")
    parts = []
    for n, names, word in (
        (compared.n_tools_new, compared.tools_new, "new"),
        (compared.n_tools_gone, compared.tools_gone, "no longer used"),
    ):
        if n:
            more = f" and {n - LISTED:,} more" if n > LISTED else ""
            parts.append(f"{word}: {', '.join(names[:LISTED])}{more}")
    return GateChange("Tools", "; ".join(parts))


_JUDGES = """
SELECT DISTINCT t.release_id, g.name, v.version FROM reviews_verdict x
JOIN traces_trial t ON t.id = x.trial_id
JOIN reviews_graderversion v ON v.id = x.grader_version_id
JOIN reviews_grader g ON g.id = v.grader_id AND g.kind = 'model'
WHERE t.release_id = ANY(%s)
"""


def _judges(now: int, then: int) -> GateChange:
    """Judge versions that gave verdicts on the one and not on the other."""
    with connection.cursor() as cursor:
        cursor.execute(_JUDGES, [[now, then]])
        rows = cursor.fetchall()
    of: dict[int, set[str]] = {now: set(), then: set()}
    for release, name, version in rows:
        of[release].add(f"{name} {version}".strip())
    new, gone = sorted(of[now] - of[then]), sorted(of[then] - of[now])
    if not new and not gone:
        return GateChange("Judges", "the same versions" if of[now] else "none")
    return GateChange("Judges", _new_and_gone(new, gone))


def _new_and_gone(new: list[str], gone: list[str]) -> str:
    parts = []
    for names, word in ((new, "new"), (gone, "no longer used")):
        if names:
            more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
            parts.append(f"{word}: {', '.join(names[:LISTED])}{more}")
    return "; ".join(parts)


def _contracts(now: set[int], then: set[int]) -> GateChange:
    changed = now ^ then
    rows = ContractVersion.objects.filter(pk__in=changed).values_list("task__task_id", flat=True)
    tasks = sorted(set(rows))
    if not tasks:
        return GateChange("Contracts", "the same versions" if now else "none")
    more = f" and {len(tasks) - LISTED:,} more" if len(tasks) > LISTED else ""
    words = f"other versions for {counted(len(tasks), 'task')}"
    return GateChange("Contracts", f"{words}: {', '.join(tasks[:LISTED])}{more}")


def _thresholds(now: GateFound, then: GateFound) -> GateChange:
    found = [_versions(each) for each in (now, then)]
    if found[0] == found[1]:
        return GateChange("Thresholds", "the same versions")
    words = []
    for tier in sorted({*found[0], *found[1]}):
        here, there = found[0].get(tier), found[1].get(tier)
        if here != there:
            words.append(f"tier {tier}: {_version(there)} then, {_version(here)} now")
    return GateChange("Thresholds", "; ".join(words))


def _versions(found: GateFound) -> dict[str, int]:
    sections = found.gate.sections if found.gate else ()
    return {each.tier: each.threshold_set.number for each in sections if each.threshold_set}


def _version(number: int | None) -> str:
    return "none" if number is None else f"version {number}"
