"""Which cases the address asks for, and the choices that the queue offers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from evalsite.access import SystemRequest
from evalsite.common.shell import Choice, Option
from evalsite.web.case_words import ACTIONS, today_of
from reviews.core.disposition import NextAction
from reviews.core.disposition import Worker as WorkerRole
from reviews.models import CaseState
from reviews.selectors.cases import CaseFilter, CaseTotals, Worker, case_workers, task_families
from traces.models import Task
from traces.selectors.releases import ReleaseName, release_names
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import text_in, uuid_of
from traces.web.pages.cases import CaseFilterForm
from traces.web.pages.tasks import Hidden

NONE = "-"
"""Stands in an address for tasks without a family or split."""

SPLITS = {"tuning": "tuning", "held_out": "held out", "regression": "regression"}
STATES: dict[str, CaseState | None] = {
    "open": CaseState.OPEN,
    "set_aside": CaseState.SET_ASIDE,
    "closed": CaseState.CLOSED,
    "all": None,
}
_STATE_WORDS = {"open": "Open", "set_aside": "Set aside", "closed": "Closed", "all": "All"}


@dataclass(frozen=True, slots=True)
class CaseFilters:
    """What the address asks for. What does not exist asks for nothing."""

    chosen: CaseFilter
    state: str
    who: str  # "" | me | nobody | the address of a person
    release: ReleaseName | None
    is_overdue: bool
    task: Task | None
    every_release: tuple[ReleaseName, ...]
    families: tuple[str, ...]
    workers: tuple[Worker, ...]

    @classmethod
    def of(cls, request: SystemRequest, *, now: datetime) -> CaseFilters:
        """What the query asks for, in three queries; four where it names a task."""
        access = request.access
        system, get = access.system, request.GET
        releases, families = release_names(system.pk), task_families(system.pk)
        workers = case_workers(system.pk)
        state = get.get("state", "open")
        state = state if state in STATES else "open"
        action, role = get.get("action", ""), get.get("role", "")
        wanted = uuid_of(get.get("release", ""))
        release = next((each for each in releases if each.uuid == wanted), None)
        person = uuid_of(get.get("who", ""))
        worker = next((each for each in workers if each.uuid == person), None)
        who = get.get("who", "")
        who = who if who in ("me", "nobody") else (str(worker.uuid) if worker else "")
        family, split = get.get("family", ""), get.get("split", "")
        is_overdue = get.get("overdue") == "1"
        task_uuid = uuid_of(get.get("task", ""))
        task = Task.objects.filter(system=system, uuid=task_uuid).first() if task_uuid else None
        assignee = {"me": access.user.pk, "nobody": 0}.get(who, worker.pk if worker else None)
        chosen = CaseFilter(
            system.pk,
            state=STATES[state],
            action=NextAction(action) if action in set(NextAction) else None,
            worked_by=role if role in set(WorkerRole) else "",
            assignee_pk=assignee,
            release_pk=release.pk if release else (0 if get.get("release") else None),
            family=_named(family, families),
            split=_named(split, (*SPLITS, "")),
            due_before=today_of(now) if is_overdue else None,
            words=text_in(request, "q", most=200),
            task_pk=task.pk if task else (0 if get.get("task") else None),
        )
        return cls(chosen, state, who, release, is_overdue, task, releases, families, workers)

    @property
    def values(self) -> dict[str, Value]:
        """What an address says of them."""
        chosen = self.chosen
        return {
            "state": self.state if self.state != "open" else None,
            "action": chosen.action and chosen.action.value,
            "who": self.who,
            "role": chosen.worked_by,
            "release": self.release.uuid if self.release else None,
            "family": NONE if chosen.family == "" else chosen.family,
            "split": NONE if chosen.split == "" else chosen.split,
            "overdue": "1" if self.is_overdue else None,
            "q": chosen.words,
            "task": self.task.uuid if self.task else None,
        }

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the state is chosen."""
        return any(value for name, value in self.values.items() if name != "state")

    def query(self, **more: Value) -> str:
        """The query of an address with these filters; "" without any."""
        return address("", {**self.values, **more})

    def tabs(self, totals: CaseTotals, at: Addresses) -> tuple[Choice, ...]:
        """All cases, and those of each next action that there are, with counts."""
        action = self.chosen.action
        named = [
            Choice(
                ACTIONS[each].name,
                address(at.cases, {**self.values, "action": each.value}),
                is_current=each is action,
                count=n,
                help=f"Worked by: {each.worked_by.value}",
            )
            for each, n in totals.by_action.items()
            if n or each is action
        ]
        every = Choice(
            "All",
            address(at.cases, {**self.values, "action": None}),
            is_current=action is None,
            count=totals.n,
        )
        return (every, *named)

    def who_choices(self, at: Addresses, *, me: str) -> tuple[Choice, ...]:
        """Whose cases are listed."""
        people = [(str(each.uuid), each.name) for each in self.workers if each.name != me]
        return tuple(
            Choice(label, address(at.cases, {**self.values, "who": value}), value == self.who)
            for value, label in (("", "Anybody"), ("me", "Me"), ("nobody", "Nobody"), *people)
        )

    def who_label(self) -> str:
        """Whose cases are listed, as the menu says it."""
        named = {str(each.uuid): each.name for each in self.workers}
        return {"": "anybody", "me": "me", "nobody": "nobody"}.get(self.who) or named[self.who]

    def release_choices(self, at: Addresses) -> tuple[Choice, ...]:
        """The releases whose cases can be listed."""
        every = Choice(
            "All releases",
            address(at.cases, {**self.values, "release": None}),
            is_current=self.release is None,
        )
        return (
            every,
            *(
                Choice(
                    each.label,
                    address(at.cases, {**self.values, "release": each.uuid}),
                    is_current=each is self.release,
                )
                for each in self.every_release
            ),
        )

    def form(self, at: Addresses) -> CaseFilterForm:
        """The choices that are no tabs and no menus."""
        chosen, values = self.chosen, self.values
        kept = ("action", "who", "release", "task")
        return CaseFilterForm(
            action=at.cases,
            hidden=tuple(Hidden(name, str(values[name])) for name in kept if values[name]),
            roles=_options(
                chosen.worked_by,
                "Anybody's work",
                ((r.value, f"{r.value}'s work") for r in WorkerRole),
            ),
            families=_options(
                _value(chosen.family),
                "All families",
                ((each or NONE, each or "no family") for each in self.families),
            )
            if len(self.families) > 1
            else (),
            splits=_options(
                _value(chosen.split), "All splits", (*SPLITS.items(), (NONE, "no split"))
            ),
            states=tuple(
                Option(name if name != "open" else "", words, is_selected=name == self.state)
                for name, words in _STATE_WORDS.items()
            ),
            is_overdue=self.is_overdue,
            query=chosen.words,
            clear_url=address(at.cases, {"state": values["state"]}) if self.is_filtered else "",
        )


def _named(text: str, known: Iterable[str]) -> str | None:
    """The family or split that an address names: "" for none, None where it chooses nothing."""
    wanted = "" if text == NONE else text
    return wanted if text and wanted in known else None


def _value(wanted: str | None) -> str:
    return NONE if wanted == "" else wanted or ""


def _options(wanted: str, every: str, named: Iterable[tuple[str, str]]) -> tuple[Option, ...]:
    return tuple(
        Option(value, label, is_selected=value == wanted) for value, label in (("", every), *named)
    )
