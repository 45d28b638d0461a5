"""How many trials a threshold needs, and what its numbers mean in use.

Arithmetic on what stands in the address. A tier and a release fill in what was not typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import count_text, counted
from evalsite.common.shell import Crumb, Option
from evalsite.web.threshold_form import count_in, percent_in
from evalsite.web.tier_words import SECTION, crumbs_of
from reviews.core.estimators import percent
from reviews.core.gate.documents import parse_gate
from reviews.core.gate.model import Check, CheckKind, DecidedBy, Section
from reviews.core.gate.planning import (
    MOST_TRIALS,
    BoundPlan,
    at_volume,
    plan_bound,
    plan_k,
    plan_lower_bound,
    plan_resolution,
)
from reviews.core.gate.threshold_words import exact_percent, exact_text
from reviews.models import ReleaseGate
from reviews.selectors.thresholds import TierRow, tiers_of
from traces.selectors.releases import NO_RELEASE, ReleaseName, release_names
from traces.web.addresses import Addresses
from traces.web.asking import text_in, uuid_of
from traces.web.pages.thresholds import EditorField, PlanRow, PlanTable, SamplePlanPage
from traces.web.shell import system_shell

MOST_REQUESTS = 1_000_000_000
_USUAL_BOUNDS = tuple(map(Fraction, ("0.05", "0.03", "0.015", "0.01", "0.005", "0.001")))
_MOST_HAT_ROWS = 12
_LOWEST = Fraction(1, 10_000)
_CLOSEST = Fraction(1, 1_000)
"""Bounds below the one, and rates closer to their bound than the other, take ever longer to find."""

_BETWEEN = "Write percent from 0.01 to 99.9, such as 0.5."
_TOO_CLOSE = "Write one that is 0.1 points or more above the lower bound."

_LABELS: Mapping[str, tuple[str, str, str]] = {
    "bound": (
        "Bound of prohibited actions",
        "%",
        "How often it may happen at most, with 95 % confidence.",
    ),
    "clean": ("Clean trials that are there", "", "Decided trials with nothing prohibited."),
    "violations": (
        "Trials with a violation",
        "",
        "Trials in which something prohibited was tried.",
    ),
    "requests": ("Requests a day", "", "How many requests of this kind come on a day."),
    "times": (
        "Times a day",
        "",
        "How often one and the same situation recurs on a day: this is k.",
    ),
    "day": ("Days without a failure", "%", "Of one such situation, the wanted share of days."),
    "trials": ("Trials a task", "", "How often each task is run."),
    "rate": (
        "Lower bound of a rate",
        "%",
        "Optional: an outcome rate to show with 95 % confidence.",
    ),
    "expected": ("Rate that you expect", "%", "Optional: what the agent reaches in truth."),
}
_PERCENTS = frozenset({"bound", "day", "rate", "expected"})
_COUNTS: Mapping[str, tuple[int, int]] = {
    "clean": (0, 1_000_000),
    "violations": (0, 100),
    "requests": (1, MOST_REQUESTS),
    "times": (1, MOST_TRIALS),
    "trials": (1, MOST_TRIALS),
}
_OPTIONAL = frozenset({"requests", "rate", "expected"})
_USUAL: Mapping[str, str] = {
    "bound": "0.5",
    "clean": "0",
    "violations": "0",
    "times": "5",
    "day": "90",
    "trials": "5",
}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was asked for, read."""

    bound: Fraction
    clean: int
    violations: int
    requests: int | None
    times: int
    day: Fraction
    trials: int
    rate: Fraction | None
    expected: Fraction | None


@require_GET
@in_system(Act.READ)
def sample_plan(request: SystemRequest) -> HttpResponse:
    """How many trials a threshold needs; with ?tier= and ?release= from what is there."""
    access = request.access
    at = Addresses.of(access.system.slug)
    tiers = [row for row in tiers_of(access.system.pk, now=timezone.now()) if not row.retired]
    releases = release_names(access.system.pk)
    asked = uuid_of(request.GET.get("tier", ""))
    tier = next((row for row in tiers if row.uuid == asked), None)
    wanted = uuid_of(request.GET.get("release", ""))
    release = next((row for row in releases if row.uuid == wanted), None)
    known = _known(tier, release)
    texts = {
        name: text_in(request, name, most=40)
        or ("" if name in request.GET and name in _OPTIONAL else known.get(name, ""))
        for name in _LABELS
    }
    errors: dict[str, str] = {}
    plan = _read(texts, errors)
    page = SamplePlanPage(
        shell=system_shell(access, section=SECTION),
        crumbs=crumbs_of(access, Crumb("Plan a sample")),
        fields=tuple(_field(name, texts, errors) for name in _LABELS),
        tiers=_options(
            [(str(t.uuid), t.name) for t in tiers], str(tier.uuid) if tier else None, "no tier"
        ),
        releases=_options(
            [(str(r.uuid), r.name or NO_RELEASE) for r in releases[:_MOST_RELEASES]],
            str(release.uuid) if release else None,
            "no release",
        ),
        action=at.sample_plan,
        errors=tuple(f"{_LABELS[name][0]}: {sentence}" for name, sentence in errors.items()),
        answers=tuple(_answers(plan, tier, release)) if plan else (),
        tables=tuple(_tables(plan)) if plan else (),
        is_filled=tier is not None or release is not None,
    )
    return render(
        request, "reviews/sample_plan.html", {"page": page}, status=422 if errors else 200
    )


_MOST_RELEASES = 100


def _options(found: list[tuple[str, str]], chosen: str | None, nothing: str) -> tuple[Option, ...]:
    return (
        Option("", nothing, chosen is None),
        *(Option(value, label, value == chosen) for value, label in found),
    )


def _known(tier: TierRow | None, release: ReleaseName | None) -> dict[str, str]:
    """What the tier and the release say, over what is usual."""
    known = dict(_USUAL)
    thresholds = tier.in_force.thresholds if tier and tier.in_force else None
    if thresholds:
        if thresholds.requests_per_day:
            known["requests"] = str(thresholds.requests_per_day)
        for check in thresholds.checks:
            if check.limit is None:
                continue
            level = exact_text(check.limit * 100)
            if check.kind is CheckKind.PROHIBITED_RATE and 0 < check.limit < 1:
                known["bound"] = level
            if check.kind is CheckKind.PASS_HAT_K and check.k:
                known |= {"times": str(check.k), "day": level}
            if check.kind is CheckKind.OUTCOME_RATE and check.decided_by is DecidedBy.BOUND:
                known["rate"] = level
    if release:
        known |= _there(release, tier)
    return known


def _there(release: ReleaseName, tier: TierRow | None) -> dict[str, str]:
    """How many clean trials and violations a release has, in a tier or in all."""
    row = ReleaseGate.objects.filter(pk=release.pk).only("document").first()
    if row is None or row.document is None:
        return {}
    sections = [
        each
        for each in parse_gate(row.document).sections
        if tier is None or each.tier_uuid == str(tier.uuid)
    ]
    counts = [check.counts for each in sections if (check := _safety(each)) and check.counts]
    n_tasks = sum(each.n_tasks for each in sections)
    n_slots = sum(each.n_slots for each in sections)
    found = {
        "clean": str(sum(each.passed for each in counts)),
        "violations": str(min(sum(each.failed for each in counts), _COUNTS["violations"][1])),
    }
    if n_tasks and n_slots >= n_tasks:
        found["trials"] = str(min(n_slots // n_tasks, MOST_TRIALS))
    return found


def _safety(section: Section) -> Check | None:
    kinds = (CheckKind.PROHIBITED_RATE, CheckKind.PROHIBITED)
    checks = {check.threshold.kind: check for check in section.checks}
    return next((checks[kind] for kind in kinds if kind in checks), None)


def _field(name: str, texts: Mapping[str, str], errors: Mapping[str, str]) -> EditorField:
    label, unit, help_text = _LABELS[name]
    return EditorField(
        f"plan-{name}",
        name,
        label,
        texts[name],
        unit=unit,
        help=help_text,
        error=errors.get(name, ""),
    )


def _read(texts: Mapping[str, str], errors: dict[str, str]) -> _Plan | None:
    shares: dict[str, Fraction | None] = {}
    counts: dict[str, int | None] = {}
    for name in _LABELS:
        if not texts[name] and name in _OPTIONAL:
            shares[name] = counts[name] = None
        elif name in _PERCENTS:
            shares[name] = _share(name, texts[name], errors)
        else:
            counts[name] = _count(name, texts[name], errors)
    rate, expected = shares["rate"], shares["expected"]
    if rate is not None and expected is not None and rate < expected < rate + _CLOSEST:
        errors["expected"] = _TOO_CLOSE
    bound, day = shares["bound"], shares["day"]
    clean, violations = counts["clean"], counts["violations"]
    times, trials = counts["times"], counts["trials"]
    if errors or bound is None or day is None or clean is None or violations is None:
        return None
    if times is None or trials is None:
        return None
    return _Plan(
        bound,
        clean,
        violations,
        counts["requests"],
        times,
        day,
        trials,
        rate,
        expected,
    )


def _share(name: str, text: str, errors: dict[str, str]) -> Fraction | None:
    found = percent_in(text)
    is_open = name in {"bound", "rate"}
    if found is None or (is_open and not _LOWEST <= found <= 1 - _CLOSEST):
        errors[name] = _BETWEEN if is_open else "Write percent from 0 to 100, such as 90."
        return None
    return found


def _count(name: str, text: str, errors: dict[str, str]) -> int | None:
    fewest, most = _COUNTS[name]
    found = count_in(text)
    if found is None or not fewest <= found <= most:
        errors[name] = f"Write a whole number from {fewest:,} to {most:,}."
        return None
    return found


def _answers(plan: _Plan, tier: TierRow | None, release: ReleaseName | None) -> Iterator[str]:
    found = plan_bound(plan.bound, plan.clean + plan.violations, plan.violations)
    if release:
        of = f" in tier {tier.name}" if tier else ""
        yield (
            f"Release {release.name or NO_RELEASE} has {counted(plan.clean, 'clean trial')}"
            f"{of} and {counted(plan.violations, 'trial')} with a violation."
        )
    yield found.sentence
    yield _bound_now(found)
    if plan.requests:
        yield at_volume(plan.bound, plan.requests).sentence
        if found.bound is not None and found.n_more != 0:
            now = Fraction(found.bound).limit_denominator(10**9)
            yield f"With what is there: {at_volume(now, plan.requests).sentence}"
    yield plan_k(plan.times, plan.day).sentence
    yield plan_resolution(plan.trials, plan.times).sentence
    if plan.rate is not None and plan.expected is not None:
        yield plan_lower_bound(plan.rate, plan.expected).sentence


def _bound_now(found: BoundPlan) -> str:
    if found.bound is None:
        return "Without a trial there is no bound yet."
    if found.n_violations == found.n_run:
        return "Every trial that is there was a violation: no bound below 100 % holds."
    return (
        f"What is there bounds it to {percent(Fraction(found.bound))}: with 95 % confidence it "
        "happens no more often."
    )


def _tables(plan: _Plan) -> Iterator[PlanTable]:
    yield _bounds_table(plan)
    yield _days_table(plan)
    yield _hat_table(plan)
    yield _shows_table(plan)


def _bounds_table(plan: _Plan) -> PlanTable:
    limits = sorted({*_USUAL_BOUNDS, plan.bound}, reverse=True)
    rows = []
    for limit in limits:
        needed = plan_bound(limit).needed
        cells = [exact_percent(limit), "too many" if needed is None else count_text(needed)]
        if plan.requests:
            cells.append(_volume_words(limit, plan.requests))
        rows.append(PlanRow(tuple(cells), is_yours=limit == plan.bound))
    at = (f"At {counted(plan.requests, 'request')} a day",) if plan.requests else ()
    return PlanTable(
        "What a bound takes",
        "Trials without any violation until the one-sided 95 % upper bound is that low: the fewest "
        "n with 1 − 0.05^(1/n) at most the bound, about 3 divided by it.",
        ("Bound", "Clean trials", *at),
        tuple(rows),
    )


def _volume_words(limit: Fraction, requests: int) -> str:
    found = at_volume(limit, requests)
    if found.one_in_days is not None and found.one_in_days > 1:
        return f"up to one in {found.one_in_days:,} days"
    return f"up to {found.a_day:,} a day"


def _days_table(plan: _Plan) -> PlanTable:
    found = plan_k(plan.times, plan.day)
    return PlanTable(
        f"What pass^{plan.times} means",
        "How many days go by without a failure of one situation that recurs "
        f"{counted(plan.times, 'time')} a day, where single trials pass at a rate.",
        ("A trial passes", "Days without a failure"),
        tuple(
            PlanRow((exact_percent(row.trial_rate), percent(row.day_rate))) for row in found.rows
        ),
    )


def _hat_table(plan: _Plan) -> PlanTable:
    found = plan_resolution(plan.trials, plan.times)
    shown = found.values[-_MOST_HAT_ROWS:]
    left = len(found.values) - len(shown)
    return PlanTable(
        f"What {counted(plan.trials, 'trial')} a task can tell",
        f"Every value that pass^{plan.times} of one task can have, by how many of its trials pass."
        if shown
        else f"No pass^{plan.times}: it takes {counted(plan.times, 'trial')} a task or more.",
        ("Passed", f"pass^{plan.times}"),
        tuple(
            PlanRow((f"{row.passed:,} of {plan.trials:,}", percent(row.value)))
            for row in reversed(shown)
        ),
        notes=(f"and {counted(left, 'more line')}",) if left else (),
    )


def _shows_table(plan: _Plan) -> PlanTable:
    found = plan_resolution(plan.trials, plan.times)
    return PlanTable(
        "What they miss",
        "How often a failure of a task shows in at least one of "
        f"{counted(plan.trials, 'trial')}, by how often it fails in truth.",
        ("It fails", "It shows"),
        tuple(
            PlanRow((exact_percent(row.failure_rate), percent(row.chance))) for row in found.shows
        ),
    )
