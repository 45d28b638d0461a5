"""Accepted paths of a task: the register, accepting and withdrawing."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Crumb
from evalsite.web.task_filters import TaskFilters
from evalsite.web.task_tabs import TaskTab, task_tabs
from reviews.core.accepted_paths import LONGEST_REASON, accepted_name, refusal_of_reason
from reviews.selectors.accepted import (
    Register,
    RegisteredPath,
    RegisterEntry,
    accepted_path,
    register_of,
)
from reviews.services.accepted_paths import AcceptanceError, withdraw_path
from traces.core.paths import PathLevel
from traces.core.text_marks import clean_text
from traces.selectors.path_layout import PathLayout, PathMembers, path_layout
from traces.selectors.releases import ReleaseName
from traces.selectors.rules import rules_of, shown_rules
from traces.selectors.task_detail import TaskDetail, task_detail
from traces.web import aligned, pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in
from traces.web.levels import LEVEL_NAMES, ChosenLevel
from traces.web.pages.accepted import (
    Acceptance,
    RegisterPage,
    RegisterRow,
    WithdrawnRow,
    WithdrawPage,
)
from traces.web.rows import trial_label
from traces.web.shell import system_shell
from traces.web.tool_names import tool_looks
from traces.web.work_notices import work_notices

PAGE_PATHS = 30


class ReasonForm(forms.Form):
    """A reason, which stays in the register."""

    reason = forms.CharField(
        label="Why",
        widget=forms.Textarea(attrs={"rows": 3, "maxlength": LONGEST_REASON}),
        help_text="It stays in the register, with your name and the time.",
    )

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        refusal = refusal_of_reason("")
        assert refusal is not None
        self.fields["reason"].error_messages["required"] = refusal.sentence

    def clean_reason(self) -> str:
        """The reason as it is stored."""
        reason: str = clean_text(self.cleaned_data["reason"]).strip()
        if refusal := refusal_of_reason(reason):
            raise forms.ValidationError(refusal.sentence)
        return reason


@require_GET
@in_system()
def accepted_paths(request: SystemRequest, task: UUID) -> HttpResponse:
    """The register of a task."""
    system = request.access.system
    found = task_detail(system.pk, task)
    if found is None:
        raise Http404("There is no such task in this system.")
    at = Addresses.of(system.slug)
    filters = TaskFilters.of(request, found)
    kept = {**ChosenLevel.of(request.GET, default=PathLevel.SEQUENCE).values, **filters.values}
    rules = rules_of(system)
    register = register_of(found.pk, system.shown_rules_id)
    skip = _skip(request)
    entries = register.entries[skip : skip + PAGE_PATHS]
    layout = path_layout(
        tuple(_members(entry) for entry in entries),
        (),
        level=PathLevel.SEQUENCE,
        messages=any(path.messages for entry in entries for path in entry.paths),
        rules=rules,
        task_id=found.task_id,
    )
    page = RegisterPage(
        shell=system_shell(request.access, section="Tasks"),
        crumbs=_crumbs(request, found, at, Crumb("Accepted paths")),
        task_id=found.task_id,
        title=found.title,
        facts=_facts(found),
        tabs=task_tabs(at, found.uuid, current=TaskTab.ACCEPTED, values=kept),
        notices=work_notices(system.pk),
        words=counted(len(register.entries), "accepted path"),
        rules=f"under rules version {shown_rules(system).number}",
        columns=tuple(range(1, layout.n_columns + 1)),
        rows=_rows(request, found, register, entries, layout, filters.every_release),
        tools=tuple(look.key for look in tool_looks(layout.tools, rules).values()),
        note=aligned.layout_note(layout),
        more=_more(register, skip + len(entries), at.register(found.uuid), kept),
        withdrawn=tuple(_withdrawn(path, at) for path in register.withdrawn),
        how_to=_how_to(request),
        empty=None if entries else _empty(request, register, at.task(found.uuid), kept),
    )
    return render(request, "reviews/accepted_paths.html", {"page": page})


def _skip(request: SystemRequest) -> int:
    """How many paths come before the first one that is shown."""
    place = number_in(request, "from") or 1
    return min(max(place - 1, 0), 10**6) // PAGE_PATHS * PAGE_PATHS


def _members(entry: RegisterEntry) -> PathMembers:
    first = entry.paths[0].trajectory
    return path_members(first, entry.members)


def path_members(representative: int, members: Sequence[tuple[int, int]]) -> PathMembers:
    """A path for the layout, its representative always among the members."""
    if representative in {pk for pk, _ in members}:
        return PathMembers(representative, tuple(members))
    return PathMembers(representative, (*members, (representative, 0)))


def level_words(level: PathLevel, *, messages: bool) -> str:
    """A level as the register says it: "Sequence, with messages"."""
    if level in (PathLevel.TOOL_SET, PathLevel.EFFECTS):
        return LEVEL_NAMES[level]
    return f"{LEVEL_NAMES[level]}, {'with messages' if messages else 'tool calls only'}"


def _crumbs(
    request: SystemRequest, task: TaskDetail, at: Addresses, *more: Crumb
) -> tuple[Crumb, ...]:
    return (
        Crumb(request.access.system.name, at.tasks),
        Crumb("Tasks", at.tasks),
        Crumb(task.task_id, at.task(task.uuid)),
        *more,
    )


def _facts(task: TaskDetail) -> tuple[str, ...]:
    return (f"task {task.task_id}", *([f"family {task.family}"] if task.family else []))


def _rows(
    request: SystemRequest,
    task: TaskDetail,
    register: Register,
    entries: Sequence[RegisterEntry],
    layout: PathLayout,
    releases: Sequence[ReleaseName],
) -> tuple[RegisterRow, ...]:
    at = Addresses.of(request.access.system.slug)
    may = request.access.may(Act.CONTRIBUTE)
    looks = tool_looks(layout.tools, rules_of(request.access.system))
    names = {release.pk: release for release in releases}

    def link(release_pk: int, words: str, path: RegisteredPath) -> pages.Link:
        release = names[release_pk]
        level = ChosenLevel(path.level, path.messages).values
        href = address(at.task(task.uuid), {**level, "release": str(release.uuid)})
        return pages.Link(release.label, href, title=words)

    rows = []
    for entry, row in zip(entries, layout.rows, strict=True):
        first = entry.paths[0]
        taken = {each.release_pk: each.n_trials for each in entry.taken}
        rows.append(
            RegisterRow(
                name=entry.name,
                level=level_words(first.level, messages=first.messages),
                n_trials=entry.n_trials,
                cells=aligned.path_cells(row, looks, trial=at.trial(first.trial_uuid)),
                acceptances=tuple(
                    _acceptance(path, at, at.withdraw(task.uuid, path.uuid) if may else "")
                    for path in entry.paths
                ),
                merged=_merged(request, entry),
                taken=tuple(
                    link(pk, counted(n, "trial"), first) for pk, n in taken.items() if pk in names
                ),
                not_taken=tuple(
                    link(pk, "", first) for pk in register.graded if pk in names and pk not in taken
                ),
            )
        )
    return tuple(rows)


def _merged(request: SystemRequest, entry: RegisterEntry) -> str:
    if len(entry.paths) < 2:
        return ""
    number = shown_rules(request.access.system).number
    name = accepted_name([path.number for path in entry.paths])
    return f"Rules version {number} makes {name} one path; each is withdrawn by itself."


def _acceptance(path: RegisteredPath, at: Addresses, withdraw_url: str = "") -> Acceptance:
    return Acceptance(
        name=accepted_name([path.number]),
        by=path.by,
        at=path.accepted_at,
        reason=path.reason,
        trial=pages.Link(
            f"trial {trial_label(path.trial_label, path.trial_attempt)}", at.trial(path.trial_uuid)
        ),
        rules=f"rules version {path.rules_number}",
        withdraw_url=withdraw_url,
    )


def _withdrawn(path: RegisteredPath, at: Addresses) -> WithdrawnRow:
    return WithdrawnRow(
        accepted=_acceptance(path, at),
        level=level_words(path.level, messages=path.messages),
        by=path.withdrawn_by,
        at=path.withdrawn_at,
        reason=path.withdrawn_reason,
    )


def _more(register: Register, last: int, here: str, kept: dict[str, Value]) -> pages.Link | None:
    n = len(register.entries)
    if last < n:
        return pages.Link(
            f"The next of {n:,} accepted paths", address(here, {**kept, "from": last + 1})
        )
    return pages.Link("From the first one on", address(here, kept)) if n > PAGE_PATHS else None


def _how_to(request: SystemRequest) -> str:
    return request.access.refusal(Act.CONTRIBUTE) or (
        "To accept a path, open Paths, look at it, and follow “Accept this path” beside it."
    )


def _empty(
    request: SystemRequest, register: Register, paths: str, kept: dict[str, Value]
) -> pages.Empty:
    if register.entries:
        return pages.Empty(
            heading="No accepted path here", sentence="There are fewer accepted paths than that."
        )
    return pages.Empty(
        heading="No accepted path",
        sentence="An accepted path is a way of passing that somebody looked at and holds to be "
        f"valid. {_how_to(request)}",
        act=pages.Link("Paths of this task", address(paths, kept)),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.CONTRIBUTE)
def path_withdraw(request: SystemRequest, task: UUID, path: UUID) -> HttpResponse:
    """Withdraw an accepted path with a reason."""
    system = request.access.system
    found = accepted_path(system.pk, task, path)
    if found is None:
        raise Http404("There is no such accepted path of this task.")
    at = Addresses.of(system.slug)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            withdraw_path(
                found,
                reason=form.cleaned_data["reason"],
                by=request.access.user,
                now=timezone.now(),
            )
        except AcceptanceError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"Accepted {found.number} is withdrawn.")
            return redirect(at.register(task))
    register = register_of(found.task_id, system.shown_rules_id)
    listed = next(
        each
        for each in (*(p for e in register.entries for p in e.paths), *register.withdrawn)
        if each.pk == found.pk
    )
    page = WithdrawPage(
        shell=system_shell(request.access, section="Tasks"),
        crumbs=(
            Crumb(system.name, at.tasks),
            Crumb("Tasks", at.tasks),
            Crumb(found.task.task_id, at.task(task)),
            Crumb("Accepted paths", at.register(task)),
            Crumb("Withdraw"),
        ),
        task_id=found.task.task_id,
        level=level_words(listed.level, messages=listed.messages),
        accepted=_acceptance(listed, at),
        form=form,
        action=at.withdraw(task, path),
        cancel_url=at.register(task),
        notices=_notices(register, listed),
    )
    return render(
        request, "reviews/path_withdraw.html", {"page": page}, status=422 if form.is_bound else 200
    )


def _notices(register: Register, path: RegisteredPath) -> tuple[pages.Notice, ...]:
    if path.withdrawn_at is not None:
        return (pages.Notice(f"Accepted {path.number} is withdrawn already.", level="warning"),)
    entry = next(each for each in register.entries if path in each.paths)
    others = [each.number for each in entry.paths if each.pk != path.pk]
    if others:
        return (
            pages.Notice(
                f"{accepted_name(others)} is the same path under the rules shown: its trials stay "
                "accepted by it."
            ),
        )
    return (
        pages.Notice(
            f"{counted(entry.n_trials, 'passing trial')} will no longer count as accepted by it."
        ),
    )
