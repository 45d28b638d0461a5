"""The rubrics of a system: their texts, who asks for them, and what was found unclear."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Q

from reviews.models import Rubric, RubricRequest, RubricVersion
from traces.core.contracts.model import Rubric as AskedRubric
from traces.models import Task
from traces.selectors.contracts import contracts_in_effect

MOST_VERSIONS = 50
MOST_REQUESTS = 50


@dataclass(frozen=True, slots=True)
class RubricUse:
    """A version of a rubric as contracts in effect ask for it."""

    version: str
    question: str
    n_tasks: int
    tasks: tuple[tuple[str, UUID], ...]  # the first ones: id and identity


@dataclass(frozen=True, slots=True)
class ListedRubric:
    """A rubric of the list. `pk` None: contracts name it, and nobody wrote its text down."""

    pk: int | None
    name: str
    n_versions: int
    newest: str
    uses: tuple[RubricUse, ...]
    n_requests: int  # open ones

    @property
    def n_tasks(self) -> int:
        """Tasks whose contract asks for it."""
        return sum(use.n_tasks for use in self.uses)


@dataclass(frozen=True, slots=True)
class RubricText:
    """One stored text of a rubric."""

    version: str
    text: str
    reason: str
    by_name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AskedText:
    """A request for a clearer text."""

    pk: int
    criterion: str
    rubric_version: str
    reason: str
    by_name: str
    opened_at: datetime
    trial_label: str
    trial_uuid: UUID
    task_id: str
    closed_at: datetime | None
    closed_by: str
    answer: str  # version that answers it; "" while open, and where it was closed otherwise
    closing_reason: str


_SHOWN_TASKS = 6


def rubric_uses(system_pk: int) -> dict[str, tuple[RubricUse, ...]]:
    """Which rubrics the contracts in effect ask for, by name. Two queries."""
    tasks = {
        pk: (task_id, identity)
        for pk, task_id, identity in Task.objects.filter(system=system_pk)
        .exclude(contract=None)
        .order_by("sort_key", "pk")
        .values_list("pk", "task_id", "uuid")
    }
    found: dict[str, dict[tuple[str, str], list[tuple[str, UUID]]]] = {}
    in_effect = contracts_in_effect(tasks)
    for pk, task in tasks.items():
        for asked in in_effect[pk].contract.semantic if pk in in_effect else ():
            by_text = found.setdefault(asked.id, {})
            by_text.setdefault(_text_key(asked), []).append(task)
    return {name: _uses(by_text) for name, by_text in sorted(found.items())}


def _text_key(asked: AskedRubric) -> tuple[str, str]:
    return asked.version, asked.question


def _uses(by_text: dict[tuple[str, str], list[tuple[str, UUID]]]) -> tuple[RubricUse, ...]:
    return tuple(
        RubricUse(version, question, len(tasks), tuple(tasks[:_SHOWN_TASKS]))
        for (version, question), tasks in sorted(by_text.items())
    )


def listed_rubrics(system_pk: int) -> tuple[ListedRubric, ...]:
    """All rubrics by name, those without a text of their own too. Five queries."""
    uses = rubric_uses(system_pk)
    stored = {
        row.name: row
        for row in Rubric.objects.filter(system=system_pk).annotate(n=Count("versions"))
    }
    newest = dict(
        RubricVersion.objects.filter(rubric__system=system_pk)
        .order_by("rubric", "-pk")
        .distinct("rubric")
        .values_list("rubric__name", "version")
    )
    asked = dict(
        RubricRequest.objects.filter(system=system_pk, closed_at=None)
        .values_list("criterion")
        .annotate(n=Count("pk"))
    )
    return tuple(
        ListedRubric(
            pk=stored[name].pk if name in stored else None,
            name=name,
            n_versions=stored[name].n if name in stored else 0,
            newest=newest.get(name, ""),
            uses=uses.get(name, ()),
            n_requests=asked.get(name, 0),
        )
        for name in sorted({*uses, *stored, *asked})
    )


def rubric_texts(rubric_pk: int) -> tuple[RubricText, ...]:
    """The texts of a rubric, the newest first."""
    rows = RubricVersion.objects.select_related("by").filter(rubric=rubric_pk).order_by("-pk")
    return tuple(
        RubricText(row.version, row.text, row.reason, row.by.printed_name, row.created_at)
        for row in rows[:MOST_VERSIONS]
    )


def asked_texts(
    system_pk: int, names: Iterable[str] | None = None, *, is_open: bool = True
) -> tuple[AskedText, ...]:
    """Requests for clearer texts, the newest first."""
    rows = RubricRequest.objects.filter(system=system_pk, closed_at__isnull=is_open)
    if names is not None:
        rows = rows.filter(criterion__in=list(names))
    related = rows.select_related("by", "closed_by", "answered_by", "adjudication__trial__task")
    return tuple(_asked(row) for row in related.order_by("-pk")[:MOST_REQUESTS])


def _asked(row: RubricRequest) -> AskedText:
    trial = row.adjudication.trial
    return AskedText(
        pk=row.pk,
        criterion=row.criterion,
        rubric_version=row.rubric_version,
        reason=row.reason,
        by_name=row.by.printed_name,
        opened_at=row.opened_at,
        trial_label=trial.label,
        trial_uuid=trial.uuid,
        task_id=trial.task.task_id,
        closed_at=row.closed_at,
        closed_by=row.closed_by.printed_name if row.closed_by else "",
        answer=row.answered_by.version if row.answered_by else "",
        closing_reason=row.closing_reason,
    )


@dataclass(frozen=True, slots=True)
class KeptText:
    """The stored text of a rubric in a version."""

    rubric_pk: int
    version: str
    text: str


def rubric_text_of(system_pk: int, name: str, version: str) -> KeptText | None:
    """The stored text of a rubric in a version; None where nobody wrote it down. One query.

    `version` "": the one version that there is, if there is only one.
    """
    rows = RubricVersion.objects.filter(rubric__system=system_pk, rubric__name=name)
    if version:
        rows = rows.filter(Q(version=version))
    found = rows.order_by("-pk").values_list("rubric_id", "version", "text")[:2]
    kept = [KeptText(*row) for row in found]
    return kept[0] if len(kept) == 1 else None
