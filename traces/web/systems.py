"""The start page, and new systems."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from evalsite.access import signed_in
from traces.core.text_marks import clean_text, has_marks
from traces.models import User
from traces.selectors.system_list import systems_of_person
from traces.services.people import OneRoleError, PeopleError, create_system
from traces.web import pages
from traces.web.shell import person_shell


class SystemForm(forms.Form):
    """A new system."""

    name = forms.CharField(max_length=200, help_text="What people call the agent.")

    engineer = forms.CharField(
        max_length=150,
        required=False,
        label="First engineer",
        help_text="Username of the person who will upload evidence. You will be the owner, and an "
        "owner does not upload: nobody signs off evidence of their own.",
    )

    def clean_engineer(self) -> User | None:
        """The person of that username."""
        username = self.cleaned_data["engineer"]
        if not username:
            return None
        person = User.objects.filter(username=clean_text(username), is_active=True).first()
        if person is None:
            raise forms.ValidationError("Nobody on this site has that username.")
        return person

    def clean_name(self) -> str:
        """The name as a page can show it."""
        name: str = clean_text(self.cleaned_data["name"])
        if has_marks(name):
            raise forms.ValidationError("The name holds characters that cannot be seen.")
        return name


@require_GET
@signed_in
def system_list(request: HttpRequest) -> HttpResponse:
    """The person's systems."""
    assert isinstance(request.user, User)
    rows = systems_of_person(request.user.pk)
    page = pages.SystemListPage(
        shell=person_shell(request),
        new_url=reverse("system-new"),
        systems=tuple(
            pages.SystemRow(
                name=row.name,
                href=reverse("task-list", kwargs={"slug": row.slug}),
                description=row.description,
                role=row.role,
                n_tasks=row.n_tasks,
                n_releases=row.n_releases,
                counts=pages.Counts(row.n_pass, row.n_graded, row.n_run),
                last_upload_at=row.last_upload_at,
                source_note=row.source_note,
            )
            for row in rows
        ),
        empty=None
        if rows
        else pages.Empty(
            heading="No system yet",
            sentence="Make a system of your own and upload traces into it, or ask an owner to "
            "make you a member of theirs.",
            act=pages.Link("New system", reverse("system-new")),
        ),
    )
    return render(request, "traces/system_list.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def system_new(request: HttpRequest) -> HttpResponse:
    """A new system; whoever makes it is its first owner."""
    assert isinstance(request.user, User)
    form = SystemForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        engineer = form.cleaned_data["engineer"]
        try:
            system = create_system(form.cleaned_data["name"], by=request.user, engineer=engineer)
        except OneRoleError as error:
            form.add_error("engineer", str(error))
        except PeopleError as error:
            form.add_error("name", str(error))
        else:
            return redirect("task-list", slug=system.slug)
    page = pages.SystemFormPage(
        shell=person_shell(request), form=form, action=reverse("system-new")
    )
    status = 422 if form.is_bound else 200
    return render(request, "traces/system_form.html", {"page": page}, status=status)
