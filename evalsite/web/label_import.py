"""The form that brings labels in, and the list of what of a file did not land."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from evalsite.access import SystemRequest
from evalsite.common.formatting import counted, limit_text
from evalsite.common.shell import Crumb
from evalsite.web.calibration_set_form import criterion_words
from evalsite.web.calibration_set_words import SECTION, crumbs_of, word_table
from reviews.core.label_files import MOST_BYTES, MOST_LABELS, LabelFileError, read_labels
from reviews.models import Sampling
from reviews.selectors.calibration_candidates import LabelCriterion, criteria_to_label
from reviews.services.calibration_sets import (
    LONGEST_NAME,
    LONGEST_REASON,
    CalibrationSetDeniedError,
    CalibrationSetError,
)
from reviews.services.label_imports import (
    LONGEST_SOURCE,
    NOTHING_LANDED,
    Imported,
    ImportWish,
    import_from_verdicts,
    import_labels,
)
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.pages.calibration_sets import ImportPage, RefusedLabel
from traces.web.shell import system_shell

MOST_REFUSED = 200  # shown
FILE, VERDICTS = "file", "verdicts"


class ImportForm(forms.Form):
    """Labels from a file or from stored verdicts, and what is known of them."""

    what = forms.ChoiceField(
        label="What is brought in",
        choices=[
            (FILE, "A file of labels"),
            (VERDICTS, "Verdicts of people that came with the traces"),
        ],
        widget=forms.RadioSelect,
        initial=FILE,
    )
    file = forms.FileField(
        required=False,
        help_text=f"JSON Lines or CSV, one label a line; at most {limit_text(MOST_BYTES)} and "
        f"{MOST_LABELS:,} labels.",
        error_messages={"empty": "The file is empty: there is no label in it."},
        widget=forms.ClearableFileInput(attrs={"accept": ".jsonl,.json,.csv,text/csv"}),
    )
    criterion = forms.ChoiceField(
        error_messages={"invalid_choice": "Choose a criterion that is asked now."}
    )
    name = forms.CharField(label="Name of the set", max_length=LONGEST_NAME)
    sampling = forms.ChoiceField(
        label="How their trials were chosen",
        choices=[
            (Sampling.CHOSEN.value, "By hand, or nobody knows how"),
            (Sampling.RANDOM.value, "At random"),
            (Sampling.STRATIFIED.value, "So many of each kind"),
        ],
        help_text="Agreement and kappa are read on random ones only. You answer for it.",
    )
    source = forms.CharField(
        max_length=LONGEST_SOURCE,
        help_text="Who labelled, when, by which instructions, and where it was published.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    licence = forms.CharField(
        max_length=LONGEST_SOURCE, help_text='Under which licence; "our own" is one, too.'
    )
    reason = forms.CharField(
        label="Why", max_length=LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 2})
    )

    def __init__(self, criteria: tuple[LabelCriterion, ...], *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        choices = [(each.key, criterion_words(each)) for each in criteria]
        self.fields["criterion"] = forms.ChoiceField(
            choices=choices, error_messages={"invalid_choice": "Choose what is asked now."}
        )

    def clean(self) -> None:
        """A file is there where one is brought in."""
        is_file = self.cleaned_data.get("what") == FILE
        if is_file and not self.cleaned_data.get("file") and "file" not in self.errors:
            self.add_error("file", "Choose a file.")


def import_page(request: SystemRequest) -> HttpResponse:
    """The form, and what became of labels that are sent."""
    criteria = criteria_to_label(request.access.system.pk)
    if request.method != "POST":
        return _page(request, criteria, ImportForm(criteria), None)
    form = ImportForm(criteria, request.POST, request.FILES)
    found: Imported | None = None
    if form.is_valid():
        try:
            found = _imported(request, form, criteria)
        except CalibrationSetDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except LabelFileError as error:
            form.add_error("file", str(error))
        except CalibrationSetError as error:
            form.add_error(None, str(error))
        else:
            if found.calibration_set and not found.refused:
                messages.success(request, landed_words(found))
                at = Addresses.of(request.access.system.slug)
                return redirect(at.calibration_set(found.calibration_set.number))
    return _page(request, criteria, form, found)


def _imported(
    request: SystemRequest, form: ImportForm, criteria: tuple[LabelCriterion, ...]
) -> Imported:
    given = form.cleaned_data
    criterion = next(each for each in criteria if each.key == given["criterion"])
    wish = ImportWish(
        name=given["name"],
        criterion=criterion.name,
        criterion_digest=criterion.digest,
        sampling=Sampling(given["sampling"]),
        source=given["source"],
        licence=given["licence"],
        reason=given["reason"],
    )
    access, now = request.access, timezone.now()
    if given["what"] == VERDICTS:
        return import_from_verdicts(access.system, wish, by=access.user, now=now)
    # One byte more than is taken is enough to refuse the whole.
    read = read_labels(given["file"].read(MOST_BYTES + 1))
    return import_labels(access.system, wish, read, by=access.user, now=now)


def landed_words(found: Imported) -> str:
    """What became of an import, in a sentence."""
    if found.calibration_set is None:
        return NOTHING_LANDED
    number = found.calibration_set.number
    if found.is_known:
        return f"These very labels are there already, as set {number}. Nothing was added."
    return (
        f"{counted(found.n_labels, 'label')} landed in set {number}. They count in no calibration "
        "until a reviewer vouches for the set."
    )


def _page(
    request: SystemRequest,
    criteria: tuple[LabelCriterion, ...],
    form: ImportForm,
    found: Imported | None,
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    made = found.calibration_set if found else None
    refused = found.refused if found else ()
    page = ImportPage(
        shell=system_shell(access, section=SECTION),
        crumbs=crumbs_of(access.system, Crumb("Bring labels in")),
        form=form,
        action=at.label_import,
        cancel_url=at.calibration_sets,
        words=word_table(),
        landed=landed_words(found) if found else "",
        made=pages.Link(f"Set {made.number}", at.calibration_set(made.number)) if made else None,
        refused=tuple(RefusedLabel(each.line, each.sentence) for each in refused[:MOST_REFUSED]),
        refused_words=_refused_words(len(refused)),
        empty=None if criteria else _nothing(at),
    )
    status = 422 if form.is_bound and made is None else 200
    return render(request, "reviews/label_import.html", {"page": page}, status=status)


def _refused_words(n: int) -> str:
    if not n:
        return ""
    shown = f"; the first {MOST_REFUSED} are shown" if n > MOST_REFUSED else ""
    return f"{counted(n, 'label')} did not land{shown}"


def _nothing(at: Addresses) -> pages.Empty:
    return pages.Empty(
        heading="No criterion to label yet",
        sentence="Labels are of a criterion: a rubric or external criterion of a contract in effect, "
        "or one of verdicts that came in files.",
        act=pages.Link("Contracts", at.contracts),
    )
