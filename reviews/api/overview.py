"""The figures of a system's overview, as `manage.py overview --json` prints them."""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import ApiView, BadRequestError, caller_of
from reviews.api.figures import RefusedSerializer
from reviews.core.estimators import Counts, Interval, Range, clopper_pearson
from reviews.core.overview import MOST_K, Efficiency, HarmCounts, Slice, Spread, TaskMean
from reviews.core.paired import PairedFigures
from reviews.selectors.exports import plain_decimal
from reviews.selectors.overview import OverviewFilter, SystemOverview, system_overview
from traces.core.canonical import nfc
from traces.core.text_marks import csv_safe
from traces.models import Split, System
from traces.selectors.systems import releases_named

SPLITS = (*(split.value for split in Split), "none")


def overview_document(found: SystemOverview) -> dict[str, Any]:
    """Every figure of the overview as plain values for JSON. None where there is no data.

    Rates are numbers between 0 and 1; amounts and seconds are texts, so that no digit is lost.
    """
    figures = found.figures
    return {
        "system": found.system.slug,
        "release": found.release.name if found.release else None,
        "family": found.chosen.family,
        "split": found.chosen.split,
        "k": found.k,
        "n_tasks": found.n_tasks,
        "n_tasks_with_contract": found.n_contract_tasks,
        "has_rules": found.has_rules,
        "tasks_in_several_versions": list(found.several),
        "left_out": {
            "production": found.n_production,
            "injected_fault": found.n_fault,
            "tuning": found.n_tuning,
        },
        **_slice(figures, has_rules=found.has_rules),
        "gap": _number(figures.gap) if found.has_rules else None,
        "n_outcome_by_breaking_a_rule": figures.n_only_outcome,
        "cost_usd": {
            "all": _spread(found.measures.cost),
            "rule_clean": _spread(found.measures.clean_cost),
            "spend_per_success": _text(found.measures.spend_per_success),
        },
        "tool_calls": _both(found.measures.calls, found.measures.clean_calls),
        "tokens": _both(found.measures.tokens, found.measures.clean_tokens),
        "seconds": _both(found.measures.seconds, found.measures.clean_seconds),
        "step_efficiency": _efficiency(found.efficiency),
        "recovery": {
            **_rate(found.recovery.counts),
            "n_rule_clean": found.recovery.n_clean,
            "n_handed_over": found.recovery.n_handed_over,
        },
        "prohibited": [_harm(each) for each in found.harms],
        "handed_over": {"n": found.endings.n_handed_over, "n_known": found.endings.n_known},
        "without_change": {"n": found.endings.n_without_change, "n_known": found.endings.n_known},
        "requirements": [
            {
                "criterion": each.criterion,
                "class": each.kind or None,
                "mandatory": each.is_mandatory,
                "n_failed": each.counts.failed,
                "n_graded": each.counts.graded,
                "n_open": each.counts.unknown,
                "n_tasks": each.n_tasks,
            }
            for each in found.requirements
        ],
        "next_actions": dict(found.actions),
        "releases": [
            {"release": each.release.name, **_slice(each.figures, has_rules=found.has_rules)}
            for each in found.by_release
        ],
        "families": [
            {"family": name, **_slice(each, has_rules=found.has_rules)}
            for name, each in found.by_family
        ],
        "splits": [
            {"split": name, **_slice(each, has_rules=found.has_rules)}
            for name, each in found.by_split
        ],
        "change": _change(found),
    }


def _slice(each: Slice, *, has_rules: bool) -> dict[str, Any]:
    return {
        "outcome": _rate(each.outcome),
        "rule_clean": _rate(each.clean) if has_rules else None,
        "passed": _rate(each.passing),
        "pass_hat_k": {
            "outcome": _hat(each.outcome_hat),
            "rule_clean": _hat(each.clean_hat) if has_rules else None,
        },
        "failed_by_class": _classes(each),
        "n_unresolved": each.n_unresolved,
        "n_harness_errors": each.n_error,
        "n_missing": each.n_missing,
    }


def _rate(counts: Counts) -> dict[str, Any]:
    return {
        "n_pass": counts.passed,
        "n_graded": counts.graded,
        "n_run": counts.run,
        "rate": _number(counts.rate),
        "range": _ends(counts.range),
        "interval": _ends(clopper_pearson(counts.passed, counts.graded)),
    }


def _hat(hat: TaskMean) -> dict[str, Any]:
    return {
        "k": hat.k,
        "value": _number(hat.value),
        "n_tasks": hat.mean.n_tasks,
        "tasks_with_fewer_trials": list(hat.mean.left_out),
        "range": _ends(hat.range),
        "interval": _ends(hat.interval),
    }


def _classes(figures: Slice) -> dict[str, int]:
    return {
        "outcome": figures.failed_outcome,
        "constraint": figures.failed_constraint,
        "semantic": figures.failed_semantic,
    }


def _harm(each: HarmCounts) -> dict[str, Any]:
    return {
        "harm": each.harm or None,  # None: any
        "n_attempted": each.n_attempted,
        "n_committed": each.n_committed,
        "n_clean": each.n_clean,
        "n_known": each.n_known,
        "n_run": each.n_run,
        "upper_bound_over_trials": each.trial_bound,
        "tasks_violated": each.tasks_violated,
        "tasks_clean": each.tasks_clean,
        "upper_bound_over_tasks": each.task_bound,
    }


def _change(found: SystemOverview) -> dict[str, Any] | None:
    change, previous = found.change, found.previous
    if change is None or previous is None:
        return None
    return {
        "previous": previous.name,
        "n_pairs": change.n_pairs,
        "passed": _paired(change.passing),
        "outcome": _paired(change.outcome),
        "rule_clean": _paired(change.clean) if found.has_rules else None,
        "families": [{"family": name, **_paired(figures)} for name, figures in change.families],
        "failed_by_class_before": _classes(change.then),
        "failed_by_class": _classes(change.now),
        "not_paired": [
            {
                "task_id": each.unit.task,
                "version": each.unit.version,
                "contract": each.unit.contract,
                "reason": each.reason,
            }
            for each in change.unpaired
        ],
    }


def _paired(figures: PairedFigures) -> dict[str, Any]:
    test = figures.test
    return {
        "n_tasks": figures.n_tasks,
        "before": _number(figures.then),
        "now": _number(figures.now),
        "difference": _number(figures.difference),
        "flips_to_fail": list(figures.to_fail),
        "flips_to_pass": list(figures.to_pass),
        "p_sign_flips": None if test is None else float(test.p),
        "p_is_exact": None if test is None else test.is_exact,
        "p_mcnemar": _number(figures.mcnemar),
    }


def _both(everything: Spread, clean: Spread) -> dict[str, Any]:
    return {"all": _spread(everything), "rule_clean": _spread(clean)}


def _spread(spread: Spread) -> dict[str, Any]:
    return {
        "median": _text(spread.median),
        "p95": _text(spread.p95),
        "mean": _text(spread.mean),
        "total": _text(spread.total),
        "n_known": spread.n_known,
        "n": spread.n,
    }


def _efficiency(efficiency: Efficiency) -> dict[str, Any]:
    return {
        "ratio": _number(efficiency.ratio),
        "n_tasks": efficiency.n_tasks,
        "n_left_out": efficiency.n_left_out,
    }


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _text(value: Decimal | None) -> str | None:
    plain = plain_decimal(value)
    return None if plain is None else f"{plain:f}"


def _ends(ends: Range | Interval | None) -> list[float] | None:
    return None if ends is None else [float(ends.low), float(ends.high)]


# --- CSV

CSV_COLUMNS = ("part", "name", "figure", "value", "n_pass", "n_graded", "n_run", "low", "high")


def overview_csv_lines(found: SystemOverview) -> Iterator[str]:
    """One line a figure. A text that a spreadsheet would take for a formula is made harmless.

    `low` and `high` are the range of a rate; bounds and intervals are figures of their own.
    """
    yield _csv_line(CSV_COLUMNS)
    document = overview_document(found)
    for part, name, each in _sections(document):
        yield from _lines(part, name, each)


def _sections(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    lists = {
        "releases": "release",
        "families": "family",
        "splits": "split",
        "prohibited": "harm",
        "requirements": "criterion",
    }
    plain = {key: value for key, value in document.items() if key not in (*lists, "change")}
    yield ("overview", str(document["release"] or ""), plain)
    for part, named in lists.items():
        for each in document[part]:
            rest = {key: value for key, value in each.items() if key != named}
            yield (part, str(each[named] or ""), rest)
    change = document["change"]
    if change:
        families = change.pop("families")
        yield ("change", str(change["previous"]), change)
        for each in families:
            name = each.pop("family")
            yield ("change by family", name, each)


def _lines(part: str, name: str, values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        figure = f"{prefix}{key}"
        match value:
            case {"rate": rate, "n_pass": n_pass, "n_graded": n_graded, "n_run": n_run}:
                low, high = value["range"] or (None, None)
                yield _csv_line((part, name, figure, rate, n_pass, n_graded, n_run, low, high))
                rest = {
                    k: v
                    for k, v in value.items()
                    if k not in ("rate", "n_pass", "n_graded", "n_run", "range")
                }
                yield from _lines(part, name, rest, f"{figure}.")
            case dict():
                yield from _lines(part, name, value, f"{figure}.")
            case [float(), float()]:
                yield _csv_line((part, name, figure, None, None, None, None, *value))
            case list():
                for item in value:
                    shown = item if isinstance(item, str) else " ".join(map(str, item.values()))
                    yield _csv_line((part, name, figure, shown))
            case bool():
                yield _csv_line((part, name, figure, "yes" if value else "no"))
            case _:
                yield _csv_line((part, name, figure, value))


def _csv_line(cells: tuple[str | float | None, ...]) -> str:
    out = io.StringIO()
    filled = (*cells, *(None,) * (len(CSV_COLUMNS) - len(cells)))
    csv.writer(out, lineterminator="\r\n").writerow([csv_safe(cell) for cell in filled])
    return out.getvalue()


# --- API


class Overview(ApiView):
    """The figures of one release: rates with range and interval, safety, cost, failures, change."""

    @extend_schema(
        parameters=[
            OpenApiParameter("system", description="The key's own system by default."),
            OpenApiParameter("release", description="The newest with trials by default."),
            OpenApiParameter("family", description="All of them by default."),
            OpenApiParameter("split", enum=SPLITS, description="All but tuning by default."),
            OpenApiParameter("k", OpenApiTypes.INT, description=f"Of pass^k, 1 to {MOST_K}."),
        ],
        responses={
            200: OpenApiTypes.OBJECT,
            **dict.fromkeys((400, 401, 403, 404), OpenApiResponse(RefusedSerializer)),
        },
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        system = caller_of(request, query.get("system", "")).system
        split = query.get("split", "")
        if split and split not in SPLITS:
            raise BadRequestError("unknown-split", f"`split` is one of {', '.join(SPLITS)}.")
        k = query.get("k", "")
        if k and not (k.isascii() and k.isdigit() and 1 <= int(k[:9]) <= MOST_K):
            raise BadRequestError("bad-k", f"`k` is a whole number from 1 to {MOST_K}.")
        chosen = OverviewFilter(
            release=release_uuid(system, query.get("release")),
            family=nfc(query.get("family", "")),
            split=split,
            k=int(k) if k else None,
        )
        return Response(overview_document(system_overview(system, chosen)))


def release_uuid(system: System, name: str | None) -> uuid.UUID | None:
    """The address of the release of that name; None without a name. Raises `Http404`."""
    if name is None:
        return None
    found, missing = releases_named(system, [name])
    if missing:
        raise Http404("There is no such release in this system.")
    return found[0].uuid
