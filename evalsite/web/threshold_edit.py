"""The editor of a tier's thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import time_text
from evalsite.common.shell import Choice, Crumb, Option
from evalsite.web.threshold_form import (
    LIMITS,
    Reading,
    Typed,
    bare_thresholds,
    harms_to_ask,
    read_thresholds,
    read_typed,
    readable_checks,
    typed_of,
)
from evalsite.web.threshold_preview import preview_of
from evalsite.web.thresholds import tier_or_404
from evalsite.web.tier_words import SECTION, crumbs_of
from reviews.core.gate.model import (
    ALWAYS_ON,
    HAVE_BOUNDS,
    CheckKind,
    DecidedBy,
    Threshold,
    Thresholds,
)
from reviews.core.gate.thresholds import (
    COUNTS,
    FEWEST,
    KIND_NAMES,
    TEMPLATES,
    template_of,
    threshold_sentence,
)
from reviews.models import RiskTier, ThresholdSet
from reviews.selectors.thresholds import TierRow, version_of
from reviews.selectors.tiers import harms_of_tier
from reviews.services.thresholds import ThresholdConflictError, make_threshold_set
from reviews.services.tiers import LONGEST_REASON, TierDeniedError, TierError
from traces.core.text_marks import clean_text, marked_text
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in
from traces.web.pages.tasks import Hidden
from traces.web.pages.thresholds import (
    EditorField,
    EditorRow,
    Preview,
    ThresholdEditPage,
)
from traces.web.shell import system_shell

_GROUPS: tuple[tuple[str, tuple[CheckKind, ...]], ...] = (
    (
        "What trials must reach",
        (CheckKind.OUTCOME_RATE, CheckKind.RULE_CLEAN_RATE, CheckKind.PASS_HAT_K),
    ),
    ("What must not happen", (CheckKind.PROHIBITED, CheckKind.PROHIBITED_RATE)),
    ("Cost and recovery", (CheckKind.COST_P95, CheckKind.RECOVERY_RATE)),
    (
        "What may stay open",
        (CheckKind.UNRESOLVED, CheckKind.HARNESS_ERRORS, CheckKind.JUDGE_CALIBRATION),
    ),
    ("Against the last signed release", (CheckKind.REGRESSION,)),
    (
        "How much was tried",
        (
            CheckKind.FEWEST_TASKS,
            CheckKind.FEWEST_TRIALS,
            CheckKind.FEWEST_HELD_OUT,
            CheckKind.DECLARED,
        ),
    ),
)
_HELP = {
    CheckKind.OUTCOME_RATE: "Trials whose environment ends in the required state.",
    CheckKind.RULE_CLEAN_RATE: "Trials that reach the outcome, do all that is required and nothing "
    "prohibited, and keep the budget.",
    CheckKind.PASS_HAT_K: "Whether the agent succeeds each time. Choose k by how often the same "
    "situation recurs: at ten a day, pass^10 is the chance of a day without a failure.",
    CheckKind.PROHIBITED: "Zero tolerance where it stands at 0: one such trial blocks the release.",
    CheckKind.PROHIBITED_RATE: "How often it could happen for all that was seen. The planner says "
    "how many clean trials a bound needs.",
    CheckKind.COST_P95: "What 95 of 100 trials cost at most.",
    CheckKind.RECOVERY_RATE: "Trials in which a fault was injected on purpose.",
    CheckKind.UNRESOLVED: "Trials on which nobody has decided. Work settles them.",
    CheckKind.HARNESS_ERRORS: "Trials that say nothing of the agent. Running them again settles "
    "them.",
    CheckKind.JUDGE_CALIBRATION: "Judges that decide are held against people's labels. A tier may "
    "ask for more than the site does, never for less.",
    CheckKind.REGRESSION: "What was good in the last signed release stays good.",
    CheckKind.FEWEST_TASKS: "Few tasks say little of the work that comes.",
    CheckKind.FEWEST_TRIALS: "Few trials say little, whatever their rate.",
    CheckKind.FEWEST_HELD_OUT: "Tasks that nobody looked at while the agent was changed.",
    CheckKind.DECLARED: "No trial is dropped without a trace.",
}
_ALWAYS = "Always on: no tier goes without it."
_BOUND_HELP = {
    False: "Estimate: the rate that was measured. Bound: the true rate is that high with 95 % "
    "confidence, which few trials cannot show.",
    True: "Estimate: the rate that was measured. Bound: the true rate is no higher with 95 % "
    "confidence, which few trials cannot show.",
}
_LIMIT_LABELS = {
    "false_pass": "False passes at most",
    "false_fail": "False failures at most",
    "min_items": "Items at least",
    "min_people": "People at least",
}
_NO_TIME = "Write a date and a time, such as 2026-12-24T09:00. It is read as UTC."
_NO_REASON = "Say why: the reason stands beside every gate that applies these thresholds."
_LONG_REASON = f"A reason has at most {LONGEST_REASON:,} characters."


@dataclass(frozen=True, slots=True)
class _Asked:
    """Everything that stands in the form."""

    typed: Typed
    reason: str = ""
    when: str = "now"
    since: str = ""
    seen: int = 0


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.OWN)
def threshold_edit(request: SystemRequest, tier: UUID) -> HttpResponse:
    """Set thresholds: look at what they would have meant, then put them in force."""
    found = tier_or_404(request.access, tier)
    if request.method == "POST":
        return _sent(request, found)
    begin = _begin(request, found)
    asked = _Asked(typed_of(begin), seen=found.newest)
    return _page(request, found, asked, Reading(asked.typed, begin))


def _begin(request: SystemRequest, tier: TierRow) -> Thresholds:
    """What the form begins with: what the address names, else the newest version."""
    number = number_in(request, "version")
    if number is None and tier.newest and "template" not in request.GET:
        number = tier.newest
    version = version_of(tier.pk, number) if number is not None and number < 2**31 else None
    if version and version.thresholds:
        return version.thresholds
    template = template_of(request.GET.get("template", tier.template))
    return template.thresholds if template else bare_thresholds()


def _sent(request: SystemRequest, tier: TierRow) -> HttpResponse:
    sent = request.POST
    seen = sent.get("seen", "")
    asked = _Asked(
        typed=read_typed(sent),
        reason=clean_text(sent.get("reason", "")),
        when="later" if sent.get("when") == "later" else "now",
        since=clean_text(sent.get("since", ""))[:40].strip(),
        seen=int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else 0,
    )
    reading = read_thresholds(asked.typed)
    errors = dict(reading.errors)
    if sent.get("act") == "preview":
        if reading.thresholds is None:
            return _page(request, tier, asked, reading, status=422)
        preview = preview_of(request.access.system, tier, reading.thresholds, now=timezone.now())
        return _page(request, tier, asked, reading, preview=preview)
    now = timezone.now()
    since = _since(asked, errors, now=now)
    if not asked.reason.strip():
        errors["reason"] = _NO_REASON
    elif len(asked.reason) > LONGEST_REASON:
        errors["reason"] = _LONG_REASON
    if reading.thresholds is None or errors:
        return _page(request, tier, asked, Reading(asked.typed, None, errors), status=422)
    return _set(request, tier, asked, reading.thresholds, since, now=now)


def _since(asked: _Asked, errors: dict[str, str], *, now: datetime) -> datetime | None:
    """From when on; None: from now on."""
    if asked.when == "now":
        return None
    try:
        at = datetime.fromisoformat(asked.since.removesuffix("UTC").strip())
        since = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        errors["since"] = _NO_TIME
        return None
    if since < now:
        errors["since"] = (
            "That time has passed. Thresholds are never in force from before they were set; it is "
            f"{time_text(now)}."
        )
    return since


def _set(
    request: SystemRequest,
    tier: TierRow,
    asked: _Asked,
    thresholds: Thresholds,
    since: datetime | None,
    *,
    now: datetime,
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    try:
        row = make_threshold_set(
            RiskTier.objects.get(pk=tier.pk),
            thresholds,
            reason=asked.reason,
            in_force_from=since,
            by=access.user,
            now=now,
            seen_number=asked.seen,
        )
    except TierDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except ThresholdConflictError as error:
        newest = tier_or_404(access, tier.uuid)
        again = _Asked(asked.typed, asked.reason, asked.when, asked.since, newest.newest)
        return _page(
            request,
            newest,
            again,
            Reading(asked.typed, thresholds, {"": str(error)}),
            other=newest.newest,
            status=409,
        )
    except TierError as error:
        reading = Reading(asked.typed, thresholds, {"": str(error)})
        return _page(request, tier, asked, reading, status=422)
    messages.success(request, _done(tier, row, now=now))
    return redirect(at.threshold_version(tier.uuid, row.number))


def _done(tier: TierRow, row: ThresholdSet, *, now: datetime) -> str:
    since = "now" if row.in_force_from <= now else time_text(row.in_force_from)
    return (
        f"Version {row.number} of the thresholds of tier {marked_text(tier.name)} is in force from "
        f"{since} on. Releases whose first run began before keep what was in force then."
    )


def _page(
    request: SystemRequest,
    tier: TierRow,
    asked: _Asked,
    reading: Reading,
    *,
    preview: Preview | None = None,
    other: int = 0,
    status: int = 200,
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    harms = harms_of_tier(access.system.pk, tier.pk)
    rows = {row.kind: row for row in _rows(tier, asked.typed, reading, harms)}
    errors = reading.errors
    page = ThresholdEditPage(
        shell=system_shell(access, section=SECTION),
        crumbs=crumbs_of(access, Crumb(tier.name, at.tier(tier.uuid)), Crumb("Edit")),
        heading=f"Thresholds of tier {tier.name}",
        sentence=_sentence(tier),
        notices=tuple(_notices(tier, other)),
        errors=tuple(_summary(errors)),
        groups=tuple((name, tuple(rows[kind.value] for kind in kinds)) for name, kinds in _GROUPS),
        owners=_owners(asked.typed, errors),
        requests=EditorField(
            "requests",
            "requests_per_day",
            "Requests a day",
            asked.typed.text("requests_per_day"),
            help="How many of its requests come on a day. For the planner; it decides nothing.",
            error=errors.get("requests_per_day", ""),
        ),
        reason=EditorField(
            "reason",
            "reason",
            "Why",
            asked.reason,
            help="What these levels rest on, and what changed. It stands beside every gate.",
            error=errors.get("reason", ""),
        ),
        when=asked.when,
        since=EditorField(
            "since", "since", "Which time, UTC", asked.since, error=errors.get("since", "")
        ),
        seen=asked.seen,
        preview=preview,
        cancel_url=at.tier(tier.uuid),
        templates=tuple(
            Choice(
                each.name,
                address(at.threshold_edit(tier.uuid), {"template": each.key}),
                help=each.description,
            )
            for each in TEMPLATES
        ),
    )
    return render(request, "reviews/threshold_edit.html", {"page": page}, status=status)


def _sentence(tier: TierRow) -> str:
    if tier.in_force is None:
        return (
            "None are in force yet. They hold for releases whose first run begins from then on, "
            "never for results that are there already."
        )
    return (
        f"Version {tier.in_force.number} is in force since {time_text(tier.in_force.in_force_from)}. "
        "Another version holds for releases whose first run begins from then on, never for results "
        "that are there already."
    )


def _notices(tier: TierRow, other: int) -> Iterator[pages.Notice]:
    if tier.retired:
        yield pages.Notice("This tier is retired: its thresholds cannot be changed.", "warning")
    if other:
        yield pages.Notice(
            f"Version {other} came meanwhile; what it says stands below where it differs from what "
            "you typed.",
            "warning",
        )
    for each in tier.to_come:
        yield pages.Notice(
            f"Version {each.number} is already set and in force from "
            f"{time_text(each.in_force_from)}. One that you set now replaces it from its own time "
            "on.",
            "warning",
        )


def _summary(errors: Mapping[str, str]) -> Iterator[str]:
    for name, sentence in errors.items():
        head = name.partition(".")[0]
        if not name:
            yield sentence
        elif head in set(CheckKind):
            yield f"{KIND_NAMES[CheckKind(head)]}: {sentence}"
        elif head == "harm":
            yield f"{KIND_NAMES[CheckKind.PROHIBITED]}: {sentence}"
        else:
            yield sentence


def _owners(typed: Typed, errors: Mapping[str, str]) -> EditorField:
    chosen = typed.text("n_owners")
    return EditorField(
        "n-owners",
        "n_owners",
        "Owners who sign",
        chosen,
        help="Two: different people, the second an owner since before the first run began.",
        error=errors.get("n_owners", ""),
        options=(
            Option("1", "one owner", chosen != "2"),
            Option("2", "two different owners", chosen == "2"),
        ),
    )


def _rows(
    tier: TierRow, typed: Typed, reading: Reading, harms: tuple[str, ...]
) -> Iterator[EditorRow]:
    said = readable_checks(typed)
    in_force = tier.in_force.thresholds if tier.in_force else None
    was = {threshold.kind: threshold for threshold in in_force.checks} if in_force else {}
    for kind in CheckKind:
        yield EditorRow(
            kind=kind.value,
            name=KIND_NAMES[kind],
            help=_HELP[kind],
            is_on=kind in typed.on,
            always_on=_ALWAYS if kind in ALWAYS_ON else "",
            fields=tuple(_fields(kind, typed, reading.errors, harms)),
            decided_by=_decided_by(kind, typed) if kind in HAVE_BOUNDS else None,
            bound_help=_BOUND_HELP[kind is CheckKind.PROHIBITED_RATE]
            if kind in HAVE_BOUNDS
            else "",
            sentence=threshold_sentence(said[kind]) if kind in said else "",
            was=_was(was.get(kind), said.get(kind), is_on=kind in typed.on) if in_force else "",
            errors=tuple(
                sentence
                for name, sentence in reading.errors.items()
                if name in {kind.value, f"{kind}.by", f"{kind}.of"}
            ),
        )


def _was(was: Threshold | None, now: Threshold | None, *, is_on: bool) -> str:
    """What the version in force says of a check; "" where the form says the same."""
    if was == now and (was is not None or not is_on):
        return ""
    return threshold_sentence(was) if was else "Switched off."


def _decided_by(kind: CheckKind, typed: Typed) -> EditorField:
    chosen = typed.text(f"{kind}.by")
    return EditorField(
        f"{kind}-by",
        f"{kind}.by",
        "Decided by",
        chosen,
        options=(
            Option(DecidedBy.ESTIMATE.value, "estimate", chosen != DecidedBy.BOUND.value),
            Option(DecidedBy.BOUND.value, "bound", chosen == DecidedBy.BOUND.value),
        ),
    )


def _fields(
    kind: CheckKind, typed: Typed, errors: Mapping[str, str], harms: tuple[str, ...]
) -> Iterator[EditorField]:
    if kind is CheckKind.JUDGE_CALIBRATION:
        for name in LIMITS:
            unit = "%" if name.startswith("false") else ""
            yield _field(f"{kind}.{name}", _LIMIT_LABELS[name], unit, typed, errors)
        return
    if kind is CheckKind.DECLARED:
        return
    if kind is CheckKind.PASS_HAT_K:
        yield _field(f"{kind}.k", "k, trials in a row", "", typed, errors)
        of = typed.text(f"{kind}.of")
        yield EditorField(
            f"{kind}-of",
            f"{kind}.of",
            "Of",
            of,
            options=(
                Option("rule_clean", "rule-clean trials", of != "outcome"),
                Option("outcome", "trials with the outcome", of == "outcome"),
            ),
        )
    label, unit = _limit_words(kind)
    yield _field(f"{kind}.limit", label, unit, typed, errors)
    if kind is CheckKind.PROHIBITED:
        for at, each in enumerate(harms_to_ask(harms, typed), start=1):
            yield EditorField(
                f"harm-{at}",
                "harm_most",
                f"of harm {each.harm} at most",
                each.most,
                unit="trials",
                help="as above",
                error=errors.get(f"harm.{each.harm}", ""),
                hidden=(Hidden("harm", each.harm),),
            )


def _limit_words(kind: CheckKind) -> tuple[str, str]:
    """The label of a level, and its unit."""
    if kind is CheckKind.PROHIBITED_RATE:
        return "At most", "%"
    if kind is CheckKind.REGRESSION:
        return "A family falls by at most", "points"
    if kind is CheckKind.COST_P95:
        return "At most", "$"
    if kind in COUNTS:
        return "At most", "trials"
    if kind in FEWEST:
        return "At least", "trials" if kind is CheckKind.FEWEST_TRIALS else "tasks"
    return "At least", "%"


def _field(
    name: str, label: str, unit: str, typed: Typed, errors: Mapping[str, str]
) -> EditorField:
    return EditorField(
        name.replace(".", "-"), name, label, typed.text(name), unit=unit, error=errors.get(name, "")
    )
