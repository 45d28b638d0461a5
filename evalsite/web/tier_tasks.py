"""Which task is in which tier."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Crumb, Option, Pager
from evalsite.web.tier_words import (
    NO_TIER,
    OPERATOR,
    SECTION,
    crumbs_of,
    move_url,
    why_not,
)
from reviews.models import RiskTier, TierAssignment
from reviews.selectors.tiers import NO_TIER as WITHOUT
from reviews.selectors.tiers import (
    SystemTier,
    TierMove,
    TierTaskFilter,
    TierTaskPage,
    TierTaskRow,
    families_of,
    system_tier,
    tier_moves,
    tiers_in_use,
)
from reviews.selectors.tiers import tier_tasks as tasks_with_tiers
from reviews.services.tiers import (
    LONGEST_REASON,
    TierDeniedError,
    TierError,
    assign_tasks,
    assign_tier,
)
from traces.core.text_marks import clean_text, marked_text
from traces.models import Task
from traces.services.families import SPLIT_WORDS
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, pager_of, text_in, uuid_of
from traces.web.pages.tasks import Hidden
from traces.web.pages.thresholds import TierMoveForm, TierMoveLine, TierTaskLine, TierTasksPage
from traces.web.shell import system_shell

_NO_TASK = "There is no such task in this system."
_NO_FAMILY = "There is no such family in this system."
_LONGEST_FAMILY = 200


class MoveForm(forms.Form):
    """Into which tier something goes, and why."""

    tier = forms.CharField(
        required=False,
        widget=forms.Select,
        help_text="Runs that begin from now on are held against the thresholds of this tier. Those "
        "that began before keep the tier that the task was in then.",
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What a mistake in these tasks costs, and whom.",
    )

    def __init__(self, choices: list[tuple[str, str]], *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.fields["tier"].widget.choices = choices


@dataclass(frozen=True, slots=True)
class _Moved:
    """What is put into a tier: a task, the tasks of a family, or with neither the system."""

    task: Task | None = None
    family: str = ""

    @property
    def is_system(self) -> bool:
        return self.task is None and not self.family

    @property
    def values(self) -> dict[str, Value]:
        """As an address and the form name it."""
        if self.task:
            return {"what": "task", "task": self.task.uuid}
        if self.family:
            return {"what": "family", "of": self.family}
        return {"what": "system"}

    @property
    def name(self) -> str:
        if self.task:
            return f"task {self.task.task_id}"
        return f"family {self.family}" if self.family else "all other tasks"


@require_GET
@in_system(Act.READ)
def tier_tasks(request: SystemRequest) -> HttpResponse:
    """The tasks of a system with their tiers; with ?what= the form that moves something."""
    moved = _moved(request, request.GET)
    form = None
    if moved is not None:
        begin = {"tier": _tier_now(moved, request.access.system.pk)}
        form = MoveForm(_choices(request.access, moved), initial=begin)
    return _page(request, moved, form)


def _moved(request: SystemRequest, values: dict[str, str]) -> _Moved | None:
    """What the address or the form wants to move. Raises `Http404` for what is not there."""
    system = request.access.system
    match values.get("what", ""):
        case "task":
            identity = uuid_of(values.get("task", ""))
            found = Task.objects.filter(system=system, uuid=identity).first() if identity else None
            if found is None:
                raise Http404(_NO_TASK)
            return _Moved(task=found)
        case "family":
            family = clean_text(values.get("of", ""))[:_LONGEST_FAMILY].strip()
            if not (family and Task.objects.filter(system=system, family=family).exists()):
                raise Http404(_NO_FAMILY)
            return _Moved(family=family)
        case "system":
            return _Moved()
    return None


def _choices(access: Access, moved: _Moved) -> list[tuple[str, str]]:
    none = "no tier" if moved.is_system else "the system's own tier"
    tiers = tiers_in_use(access.system.pk)
    return [*((str(each.uuid), marked_text(each.name)) for each in tiers), ("", none)]


def _tier_now(moved: _Moved, system_pk: int) -> str:
    if moved.family:
        return ""
    rows = TierAssignment.objects.filter(system=system_pk, task=moved.task)
    newest = rows.select_related("tier").order_by("-pk").first()
    return str(newest.tier.uuid) if newest and newest.tier else ""


def _page(
    request: SystemRequest, moved: _Moved | None, form: MoveForm | None, *, status: int = 200
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    asked = _Asked.of(request)
    found = tasks_with_tiers(
        asked.filter_of(access.system.pk),
        after=number_in(request, "after"),
        before=number_in(request, "before"),
    )
    moves = tier_moves(access.system.pk, after=number_in(request, "moves"))
    may = access.may(Act.OWN)
    own = system_tier(access.system.pk)
    page = TierTasksPage(
        shell=system_shell(access, section=SECTION),
        crumbs=crumbs_of(access, Crumb("Tasks and their tiers")),
        own_words=_own_words(own),
        own_url=address(at.tier_tasks, {"what": "system"}, place="#form") if may else "",
        form=_form(access, at, moved, form) if moved is not None and form is not None else None,
        families=_families(access, asked),
        tiers=_tiers(access, asked),
        query=asked.words,
        action=at.tier_tasks,
        clear_url=at.tier_tasks if asked.is_filtered else "",
        family_move=_family_move(at, asked.family) if may and asked.family else None,
        total=counted(found.n_all, "task"),
        rows=tuple(_line(row, at, may=may) for row in found.rows),
        pager=_pager(found, at, asked),
        history=tuple(_move(each, at) for each in moves.rows),
        history_pager=Pager(
            next_url=address(
                at.tier_tasks, {**asked.values, "moves": moves.next_after}, place="#history"
            )
            if moves.next_after
            else "",
            words="",
        ),
        why_not=why_not(access),
        empty=None if found.rows else _nothing(at, asked),
    )
    return render(request, "reviews/tier_tasks.html", {"page": page}, status=status)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Which tasks the address asks for."""

    family: str
    tier: str
    words: str

    @classmethod
    def of(cls, request: SystemRequest) -> _Asked:
        tier = request.GET.get("tier", "")
        known = tier == WITHOUT or uuid_of(tier) is not None
        return cls(
            family=text_in(request, "family", most=_LONGEST_FAMILY),
            tier=(str(uuid_of(tier)) if tier != WITHOUT else tier) if known else "",
            words=text_in(request, "q"),
        )

    @property
    def values(self) -> dict[str, Value]:
        return {"family": self.family, "tier": self.tier, "q": self.words}

    @property
    def is_filtered(self) -> bool:
        return any(self.values.values())

    def filter_of(self, system_pk: int) -> TierTaskFilter:
        return TierTaskFilter(system_pk, family=self.family, tier=self.tier, words=self.words)


def _own_words(own: SystemTier | None) -> str:
    if own is None:
        return (
            "Tasks without a tier of their own are in none: no gate with them is ever ready, since "
            "nobody said what they have to reach."
        )
    said = f"{own.by_name or OPERATOR}, {time_text(own.since)}: {own.reason}"
    if not own.tier_name:
        return f"Tasks without a tier of their own are in none ({said})"
    return f"Tasks without a tier of their own are in tier {own.tier_name} ({said})"


def _form(access: Access, at: Addresses, moved: _Moved, form: MoveForm) -> TierMoveForm:
    together = " All of its tasks move together." if moved.family else ""
    return TierMoveForm(
        heading="Choose the tier of tasks that have none of their own"
        if moved.is_system
        else f"Put {moved.name} into another tier",
        sentence=f"The change stays in the record with its reason.{together}",
        form=form,
        action=move_url(at),
        hidden=tuple(Hidden(name, str(value)) for name, value in moved.values.items()),
        cancel_url=at.tier_tasks,
        why_not=why_not(access),
    )


def _families(access: Access, asked: _Asked) -> tuple[Option, ...]:
    found = families_of(access.system.pk)
    if not found:
        return ()
    return (
        Option("", "all families", not asked.family),
        *(Option(name, name, name == asked.family) for name in found),
    )


def _tiers(access: Access, asked: _Asked) -> tuple[Option, ...]:
    tiers = tiers_in_use(access.system.pk)
    return (
        Option("", "all tiers", not asked.tier),
        *(Option(str(t.uuid), t.name, str(t.uuid) == asked.tier) for t in tiers),
        Option(WITHOUT, "in no tier", asked.tier == WITHOUT),
    )


def _family_move(at: Addresses, family: str) -> pages.Link:
    href = address(at.tier_tasks, {"what": "family", "of": family}, place="#form")
    return pages.Link("Move this family", href)


def _pager(found: TierTaskPage, at: Addresses, asked: _Asked) -> Pager:
    return pager_of(found, at.tier_tasks, asked.values)


def _line(row: TierTaskRow, at: Addresses, *, may: bool) -> TierTaskLine:
    move = address(at.tier_tasks, {"what": "task", "task": row.uuid}, place="#form")
    return TierTaskLine(
        task=pages.Link(row.task_id, at.task(row.uuid)),
        title=row.title,
        family=pages.Link(row.family, address(at.tier_tasks, {"family": row.family}))
        if row.family
        else None,
        split=SPLIT_WORDS[row.split],
        tier=_tier_link(row.tier_uuid, row.tier_name, at),
        is_own=row.is_own,
        since=row.since,
        by=row.by_name or (OPERATOR if row.since else ""),
        reason=row.reason,
        move_url=move if may else "",
    )


def _tier_link(uuid: object, name: str, at: Addresses) -> pages.Link | None:
    identity = uuid_of(str(uuid)) if uuid else None
    return pages.Link(name, at.tier(identity)) if identity else None


def _move(each: TierMove, at: Addresses) -> TierMoveLine:
    what = (
        pages.Link(f"task {each.task_id}", at.task(each.task_uuid))
        if each.task_uuid
        else pages.Link("all other tasks")
    )
    return TierMoveLine(
        what=what,
        tier=_tier_link(each.tier_uuid, each.tier_name, at),
        by=each.by_name or OPERATOR,
        at=each.at,
        reason=each.reason,
    )


def _nothing(at: Addresses, asked: _Asked) -> pages.Empty:
    if asked.is_filtered:
        return pages.Empty(
            "No task is like that",
            "No task of this system fits the filter.",
            pages.Link("All tasks", at.tier_tasks),
        )
    return pages.Empty(
        "No task yet",
        "Tasks come with the evidence that names them, or with a contract. Each is then in the "
        "system's own tier until an owner puts it into another one.",
        pages.Link("Uploads", at.uploads),
    )


@require_POST
@in_system(Act.OWN)
def tier_assign(request: SystemRequest) -> HttpResponse:
    """Put a task, a family or all other tasks into a tier."""
    access = request.access
    moved = _moved(request, request.POST)
    if moved is None:
        raise Http404(_NO_TASK)
    tier = _tier(access, request.POST.get("tier", ""))
    form = MoveForm(_choices(access, moved), request.POST)
    if form.is_valid():
        try:
            n = _assign(access, moved, tier, form.cleaned_data["reason"], now=timezone.now())
        except TierDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except TierError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _moved_words(moved, tier, n))
            return redirect(Addresses.of(access.system.slug).tier_tasks)
    return _page(request, moved, form, status=422)


def _tier(access: Access, sent: str) -> RiskTier | None:
    if not sent:
        return None
    identity = uuid_of(sent)
    tiers = RiskTier.objects.filter(system=access.system)
    found = tiers.filter(uuid=identity).first() if identity else None
    if found is None:
        raise Http404(NO_TIER)
    return found


def _assign(
    access: Access, moved: _Moved, tier: RiskTier | None, reason: str, *, now: datetime
) -> int:
    """How many tasks were put into the tier; 0 for the system's own."""
    system, by = access.system, access.user
    if moved.is_system:
        assign_tier(system, None, tier, reason, by=by, now=now)
        return 0
    if moved.task:
        assign_tier(system, moved.task, tier, reason, by=by, now=now)
        return 1
    tasks = list(Task.objects.filter(system=system, family=moved.family).order_by("pk"))
    return len(assign_tasks(system, tasks, tier, reason, by=by, now=now, family=moved.family))


def _moved_words(moved: _Moved, tier: RiskTier | None, n: int) -> str:
    if moved.is_system:
        where = f"in tier {marked_text(tier.name)}" if tier else "in no tier"
        return f"Tasks without a tier of their own are {where} from now on."
    where = f"in tier {marked_text(tier.name)}" if tier else "in the system's own tier"
    if moved.task:
        return f"Task {marked_text(moved.task.task_id)} is {where} from now on."
    are = "is" if n == 1 else "are"
    return f"{counted(n, 'task')} of {marked_text(moved.name)} {are} {where} from now on."
