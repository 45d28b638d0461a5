"""Which disputes the address asks for, and the choices that their list offers.

The page of a dispute reads the same query, so that previous and next stay inside the list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evalsite.access import SystemRequest
from evalsite.common.shell import Choice, Option
from evalsite.web.case_filters import SPLITS
from evalsite.web.dispute_words import JUDGES_AGREE, KINDS, STANCES
from reviews.core.disputes import DisputeKind
from reviews.models import DisputeState
from reviews.selectors.cases import task_families
from reviews.selectors.disputes import (
    NO_JUDGE,
    DisputeFilter,
    DisputePlace,
    DisputeTotals,
    JudgeChoice,
    Stance,
    disputed_criteria_names,
    judge_choices,
)
from traces.core.records import CriterionClass
from traces.models import Role
from traces.selectors.releases import ReleaseName, release_names
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import text_in, uuid_of
from traces.web.pages.disputes import DisputeFilterForm
from traces.web.pages.tasks import Hidden

NONE = "-"
"""Stands in an address for no family, split, rubric version or judge."""

AGREEING = "judges_agree"
"""Stands among the kinds for judges that agree, against code."""

STATES: dict[str, DisputeState | None] = {
    "open": DisputeState.OPEN,
    "adjudicated": DisputeState.ADJUDICATED,
    "over": DisputeState.OVER,
    "all": None,
}
_STATE_WORDS = {
    "open": "Open",
    "adjudicated": "Adjudicated",
    "over": "Over: no longer disputed",
    "all": "All",
}
GROUPS, LIST = "groups", "list"
SCREENFUL = 20  # disputes from which they are shown in groups


@dataclass(frozen=True, slots=True)
class DisputeFilters:
    """What the address asks for. What does not exist asks for nothing."""

    chosen: DisputeFilter
    state: str
    view: str  # "" | groups | list
    mine: str  # "" | left | skipped
    judge: JudgeChoice | None
    release: ReleaseName | None
    is_reviewer: bool
    every_release: tuple[ReleaseName, ...]
    families: tuple[str, ...]
    judges: tuple[JudgeChoice, ...]
    criteria: tuple[str, ...]

    @classmethod
    def of(cls, request: SystemRequest) -> DisputeFilters:
        """What the query asks for, in four queries."""
        access = request.access
        system, get = access.system, request.GET
        releases, families = release_names(system.pk), task_families(system.pk)
        judges, criteria = judge_choices(system.pk), disputed_criteria_names(system.pk)
        state = get.get("state", "open")
        state = state if state in STATES else "open"
        wanted = uuid_of(get.get("release", ""))
        release = next((each for each in releases if each.uuid == wanted), None)
        asked = get.get("judge", "")
        judge = next((each for each in judges if str(each.pk) == asked), None)
        key = judge.key if judge else (NO_JUDGE if asked == NONE else None)
        is_reviewer = access.role is Role.REVIEWER
        mine = get.get("mine", "")
        mine = mine if is_reviewer and mine in ("left", "skipped") else ""
        view = get.get("view", "")
        kind, stance, class_name = get.get("kind", ""), get.get("stance", ""), get.get("class", "")
        criterion = text_in(request, "criterion")
        rubric = text_in(request, "rubric", most=200)
        chosen = DisputeFilter(
            system.pk,
            state=STATES[state],
            deciding=get.get("deciding") == "1",
            criterion_class=CriterionClass(class_name)
            if class_name in set(CriterionClass)
            else None,
            criterion=criterion or None,
            rubric_version="" if rubric == NONE else rubric or None,
            judge=key,
            stance=Stance(stance) if judge and stance in set(Stance) else None,
            kind=DisputeKind(kind) if kind in set(DisputeKind) else None,
            judges_agree=kind == AGREEING,
            release_pk=release.pk if release else (0 if get.get("release") else None),
            family=_named(get.get("family", ""), families),
            split=_named(get.get("split", ""), (*SPLITS, "")),
            skipped_by=access.user.pk if mine == "skipped" else None,
            left_to=access.user.pk if mine == "left" else None,
        )
        return cls(
            chosen,
            state,
            view if view in (GROUPS, LIST) else "",
            mine,
            judge,
            release,
            is_reviewer,
            releases,
            families,
            judges,
            criteria,
        )

    @property
    def values(self) -> dict[str, Value]:
        """What an address says of them."""
        chosen = self.chosen
        return {
            "state": self.state if self.state != "open" else None,
            "deciding": "1" if chosen.deciding else None,
            "class": chosen.criterion_class and chosen.criterion_class.value,
            "criterion": chosen.criterion,
            "rubric": NONE if chosen.rubric_version == "" else chosen.rubric_version,
            "judge": NONE if chosen.judge == NO_JUDGE else self.judge.pk if self.judge else None,
            "stance": chosen.stance and chosen.stance.value,
            "kind": AGREEING if chosen.judges_agree else chosen.kind and chosen.kind.value,
            "release": self.release.uuid if self.release else None,
            "family": NONE if chosen.family == "" else chosen.family,
            "split": NONE if chosen.split == "" else chosen.split,
            "mine": self.mine,
        }

    @property
    def is_filtered(self) -> bool:
        """Whether anything but the state is chosen."""
        return any(value for name, value in self.values.items() if name != "state")

    @property
    def tells_what_is_said(self) -> bool:
        """Whether being in the list tells what graders say of a dispute."""
        chosen = self.chosen
        return any(
            (
                chosen.deciding,
                chosen.kind,
                chosen.judges_agree,
                chosen.judge is not None,
                self.state != "open",
            )
        )

    def query(self, **more: Value) -> str:
        """The query of an address with these filters; "" without any."""
        return address("", {**self.values, **more})

    def list_url(self, at: Addresses, **more: Value) -> str:
        """The list, not grouped, with these filters and more of them."""
        return address(at.disputes, {**self.values, **more, "view": LIST})

    def tabs(self, totals: DisputeTotals, at: Addresses) -> tuple[Choice, ...]:
        """All disputes that are like that, and those alone that decide something."""
        kept = {**self.values, "view": self.view}
        deciding = self.chosen.deciding
        return (
            Choice(
                "All",
                address(at.disputes, {**kept, "deciding": None}),
                is_current=not deciding,
                count=totals.n,
            ),
            Choice(
                "Decide something",
                address(at.disputes, {**kept, "deciding": "1"}),
                is_current=deciding,
                count=totals.n_deciding,
                help="An adjudication would settle a requirement of its trial.",
            ),
        )

    def views(self, at: Addresses, *, current: str) -> tuple[Choice, ...]:
        """Grouped by cause, or one by one."""
        return tuple(
            Choice(label, address(at.disputes, {**self.values, "view": view}), view == current)
            for view, label in ((GROUPS, "By cause"), (LIST, "One by one"))
        )

    def form(self, at: Addresses) -> DisputeFilterForm:
        """The choices that are no tabs."""
        chosen, values = self.chosen, self.values
        kept = {
            "deciding": values["deciding"],
            "rubric": values["rubric"],
            "stance": values["stance"],
            "view": self.view,
        }
        kind = AGREEING if chosen.judges_agree else chosen.kind or ""
        return DisputeFilterForm(
            action=at.disputes,
            hidden=tuple(Hidden(name, str(value)) for name, value in kept.items() if value),
            states=tuple(
                Option(name if name != "open" else "", words, is_selected=name == self.state)
                for name, words in _STATE_WORDS.items()
            ),
            classes=_options(
                chosen.criterion_class or "",
                "All classes",
                ((c.value, c.value) for c in CriterionClass),
            ),
            criteria=_options(
                chosen.criterion or "", "All criteria", ((name, name) for name in self._criteria())
            ),
            kinds=_options(
                kind,
                "Anybody",
                (
                    *((each.value, words) for each, words in KINDS.items()),
                    (AGREEING, JUDGES_AGREE),
                ),
            ),
            judges=_options(
                str(values["judge"] or ""),
                "All judges",
                (
                    *((str(j.pk), f"{j.name} {j.version}".strip()) for j in self.judges),
                    (NONE, "no judge"),
                ),
            ),
            releases=_options(
                str(values["release"] or ""),
                "All releases",
                ((str(each.uuid), each.label) for each in self.every_release),
            ),
            families=_options(
                str(values["family"] or ""),
                "All families",
                ((each or NONE, each or "no family") for each in self.families),
            )
            if len(self.families) > 1
            else (),
            splits=_options(
                str(values["split"] or ""), "All splits", (*SPLITS.items(), (NONE, "no split"))
            ),
            mine=_options(
                self.mine,
                "All",
                (("left", "those left to me"), ("skipped", "those I skipped")),
            )
            if self.is_reviewer
            else (),
            also=self._also(),
            clear_url=address(at.disputes, {"state": values["state"], "view": self.view})
            if self.is_filtered
            else "",
        )

    def _criteria(self) -> tuple[str, ...]:
        """Those of the menu; one that is asked for is among them."""
        asked = self.chosen.criterion
        return self.criteria if asked is None or asked in self.criteria else (asked, *self.criteria)

    def _also(self) -> tuple[str, ...]:
        """What is chosen that no menu of the list offers."""
        rubric, stance = self.chosen.rubric_version, self.chosen.stance
        found = []
        if rubric is not None:
            found.append(f"rubric version {rubric}" if rubric else "no rubric version named")
        if stance is not None:
            found.append(f"this judge: {STANCES[stance]}")
        return tuple(found)


def place_in(request: SystemRequest, name: str) -> DisputePlace | None:
    """The place of the list that the query names."""
    return DisputePlace.of(request.GET.get(name, ""))


def _named(text: str, known: Iterable[str]) -> str | None:
    """The family or split that an address names: "" for none, None where it chooses nothing."""
    wanted = "" if text == NONE else text
    return wanted if text and wanted in known else None


def _options(wanted: str, every: str, named: Iterable[tuple[str, str]]) -> tuple[Option, ...]:
    return tuple(
        Option(value, label, is_selected=value == wanted) for value, label in (("", every), *named)
    )
