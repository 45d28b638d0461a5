"""The trials of a system."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system
from evalsite.common.shell import Crumb, Option
from traces.core.records import Disposition
from traces.models import Task, Upload
from traces.selectors.releases import release_names
from traces.selectors.trial_list import TrialFilter, listed_trials
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, pager_of, text_in, uuid_of
from traces.web.rows import trial_row
from traces.web.shell import system_shell
from traces.web.trial_conditions import Conditions


@require_GET
@in_system()
def trial_list(request: SystemRequest) -> HttpResponse:
    """The trials of a system, newest first, found by task, release, disposition or name."""
    system = request.access.system
    at = Addresses.of(system.slug)
    releases = release_names(system.pk)
    asked = {uuid_of(value) for value in request.GET.getlist("release")} - {None}
    chosen = tuple(release for release in releases if release.uuid in asked)
    word = request.GET.get("disposition", "")
    disposition = Disposition(word) if word in set(Disposition) else None
    words = text_in(request, "q")
    task_uuid = uuid_of(request.GET.get("task", ""))
    task = Task.objects.filter(system=system, uuid=task_uuid).first() if task_uuid else None
    upload_uuid = uuid_of(request.GET.get("upload", ""))
    upload = Upload.objects.filter(system=system, uuid=upload_uuid).first() if upload_uuid else None
    conditions = Conditions.of(request)
    found = listed_trials(
        conditions.narrow(
            TrialFilter(
                system.pk,
                # A task that does not exist has no trials.
                task_pk=task.pk if task else (0 if request.GET.get("task") else None),
                release_pks=tuple(release.pk for release in chosen) or ((0,) if asked else ()),
                disposition=disposition,
                upload_pk=upload.pk if upload else (0 if request.GET.get("upload") else None),
                words=words,
            )
        ),
        newest_first=True,
        after=number_in(request, "after"),
        before=number_in(request, "before"),
    )
    values: dict[str, Value] = {
        "upload": upload.uuid if upload else None,
        "task": task.uuid if task else None,
        "release": [str(release.uuid) for release in chosen],
        "disposition": disposition.value if disposition else None,
        "q": words,
        **conditions.values,
    }
    is_filtered = any(values.values())
    page = pages.TrialListPage(
        shell=system_shell(request.access, section="Trials"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Trials")),
        action=at.trials,
        releases=(
            Option("", "All releases", is_selected=not chosen),
            *(Option(str(r.uuid), r.label, is_selected=r in chosen) for r in releases),
        ),
        dispositions=(
            Option("", "Any disposition", is_selected=disposition is None),
            *(
                Option(each.value, each.value.replace("_", " "), is_selected=each is disposition)
                for each in Disposition
            ),
        ),
        query=words,
        task=pages.Link(task.task_id, at.task(task.uuid)) if task else None,
        task_value=str(task.uuid) if task else "",
        conditions=conditions.words,
        hidden=tuple(
            pages.Hidden(name, str(value)) for name, value in conditions.values.items() if value
        ),
        clear_url=at.trials if is_filtered else "",
        rows=tuple(trial_row(row, at) for row in found.rows),
        pager=pager_of(found, at.trials, values),
        csv_url=export_address("trials-csv", system.slug, chosen),
        jsonl_url=export_address("trials-jsonl", system.slug, chosen),
        empty=None if found.rows else _nothing(at, is_filtered=is_filtered),
    )
    return render(request, "traces/trial_list.html", {"page": page})


def export_address(name: str, slug: str, releases: object) -> str:
    """Where an export is downloaded; of one release where just one is chosen."""
    try:
        path = reverse(name, kwargs={"slug": slug})
    except NoReverseMatch:
        return ""
    one = releases[0].name if isinstance(releases, tuple) and len(releases) == 1 else ""
    return address(path, {"release": one})


def _nothing(at: Addresses, *, is_filtered: bool) -> pages.Empty:
    if is_filtered:
        return pages.Empty(
            heading="No trial is like that",
            sentence="Take a filter away. A trial is found by its address, its number or name, "
            "or the id that its source gave.",
            act=pages.Link("All trials", at.trials),
        )
    return pages.Empty(
        heading="No trial yet",
        sentence="Trials come in with uploads.",
        act=pages.Link("Upload traces", at.new_upload),
    )
