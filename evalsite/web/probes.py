"""Probes: batches of changed copies that judges are tried with, and what judges made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Crumb, Option, Pager
from evalsite.web.adjudicate_cards import text_block
from reviews.api.probes import bundle_answer
from reviews.core.probes import (
    KIND_NAMES,
    KIND_SENTENCES,
    MAY_FALL_SENTENCE,
    Edit,
    ProbeKind,
    ProbeResult,
)
from reviews.models import ProbeBatch
from reviews.selectors.blinding import hidden_criteria
from reviews.selectors.calibration_candidates import LabelCriterion, criteria_to_label
from reviews.selectors.probes import (
    PAGE,
    BatchRow,
    ProbeRow,
    TriedJudge,
    TriedProbe,
    batch_numbered,
    batch_rows,
    counted_by_kind,
    judges_tried,
    plain_score,
    probes_of,
)
from reviews.services.probes import (
    LONGEST_REASON,
    MOST_TRIALS,
    BatchWish,
    ProbeDeniedError,
    ProbeError,
    make_batch,
)
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in, text_in
from traces.web.pages.probes import (
    ProbeAnswer,
    ProbeBatchPage,
    ProbeBatchRow,
    ProbeEdit,
    ProbeForm,
    ProbeJudge,
    ProbeKindChoice,
    ProbeKindLine,
    ProbeLine,
    ProbeListPage,
    ProbeTrial,
)
from traces.web.rows import trial_label
from traces.web.shell import system_shell

TRIALS_SHOWN = 10  # with their probes, on one page
MOST_JUDGES = 20
SHOWN_CHARACTERS = 2_000  # of a text before or after
FOLDED_FROM = 600
_NO_BATCH = "There is no such batch of probes in this system."
_HIDDEN = "Hidden from you: this trial is in a blind set, and what judges say of it may sway you."
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_CHANGES = tuple(kind for kind in ProbeKind if kind is not ProbeKind.CONTROL)
_MUST = {
    ProbeKind.PADDED: "must hold, the score may fall",
    ProbeKind.WRONG_VALUE: "must fall",
    ProbeKind.INJECTION: "must be fail or unknown",
}
_WORDS = {True: ("right", "pass"), False: ("wrong", "fail"), None: ("tells nothing", "unresolved")}


class MakeForm(forms.Form):
    """Which probes somebody wants."""

    criterion = forms.CharField(
        max_length=1_000, error_messages={"required": "Choose a criterion."}
    )
    trials_from = forms.ChoiceField(
        choices=[("drawn", "drawn"), ("named", "named")], required=False
    )
    n = forms.IntegerField(
        min_value=1,
        max_value=MOST_TRIALS,
        initial=5,
        required=False,
        label="How many trials to draw",
        error_messages={
            "min_value": f"A batch is of 1 to {MOST_TRIALS} trials.",
            "max_value": f"A batch is of 1 to {MOST_TRIALS} trials.",
            "invalid": "Give a whole number.",
        },
    )
    trials = forms.CharField(
        required=False,
        max_length=20_000,
        label="The trials",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=f"Ids or addresses of up to {MOST_TRIALS} trials, one a line.",
    )
    kinds = forms.MultipleChoiceField(
        choices=[(kind.value, KIND_NAMES[kind]) for kind in _CHANGES],
        error_messages={"required": "Choose at least one kind of change."},
    )
    may_fall = forms.BooleanField(required=False)
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="Why they are made",
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Say why these probes are made."},
    )

    @property
    def is_drawn(self) -> bool:
        """Whether trials are drawn, not named."""
        return bool(self["trials_from"].value() != "named")

    @property
    def named(self) -> tuple[UUID, ...]:
        """The trials that are named, each once."""
        found = _UUID.findall(self.cleaned_data.get("trials") or "")
        return tuple(dict.fromkeys(map(UUID, found)))


@require_GET
@in_system()
def probe_list(request: SystemRequest) -> HttpResponse:
    """The batches of a system, newest first, and the form that makes one."""
    initial = {
        "criterion": text_in(request, "criterion", most=1_000),
        "trials": text_in(request, "trial", most=20_000),
        "kinds": [kind.value for kind in _CHANGES],
        "trials_from": "named" if request.GET.get("trial") else "drawn",
        "n": 5,
    }
    return _list(request, MakeForm(initial=initial))


@require_POST
@in_system(Act.ASK_JUDGES)
def probe_new(request: SystemRequest) -> HttpResponse:
    """Make a batch of probes."""
    access = request.access
    form = MakeForm(request.POST)
    if not form.is_valid():
        return _list(request, form, status=422)
    criterion = _chosen(form.cleaned_data["criterion"], criteria_to_label(access.system.pk))
    if criterion is None:
        form.add_error("criterion", "This system has no such criterion; it may have changed since.")
        return _list(request, form, status=422)
    if not form.is_drawn and not form.named:
        form.add_error("trials", "Name at least one trial by its id or address.")
        return _list(request, form, status=422)
    try:
        batch = make_batch(
            access.system, _wish(form, criterion), by=access.user, now=timezone.now()
        )
    except ProbeDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except ProbeError as error:
        form.add_error(None, str(error))
        return _list(request, form, status=422)
    messages.success(request, f"Batch {batch.number} is made: fetch its bundle for your judges.")
    return redirect(Addresses.of(access.system.slug).probe_batch(batch.number))


def _wish(form: MakeForm, criterion: LabelCriterion) -> BatchWish:
    values = form.cleaned_data
    return BatchWish(
        criterion=criterion.name,
        criterion_digest=criterion.digest,
        kinds=frozenset(map(ProbeKind, values["kinds"])),
        reason=values["reason"],
        n=values["n"] or 0 if form.is_drawn else 0,
        trials=() if form.is_drawn else form.named,
        may_fall=values["may_fall"],
    )


def _chosen(key: str, criteria: Iterable[LabelCriterion]) -> LabelCriterion | None:
    return next((each for each in criteria if each.key == key), None)


def _list(request: SystemRequest, form: MakeForm, *, status: int = 200) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    before = number_in(request, "before")
    found = batch_rows(access.system.pk, before=before)
    rows = found[:PAGE]
    criteria = criteria_to_label(access.system.pk)
    page = ProbeListPage(
        shell=system_shell(access, section="Judges"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Judges", at.judges),
            Crumb("Probes"),
        ),
        rows=tuple(_row(row, at) for row in rows),
        pager=Pager(
            previous_url=at.probes if before else "",
            next_url=address(at.probes, {"before": rows[-1].number}) if len(found) > PAGE else "",
        ),
        new=_new(access, form, criteria, at) if criteria else None,
        empty=None if rows else _nothing(before, at, has_criteria=bool(criteria)),
    )
    return render(request, "reviews/probe_list.html", {"page": page}, status=status)


def _row(row: BatchRow, at: Addresses) -> ProbeBatchRow:
    return ProbeBatchRow(
        batch=pages.Link(f"Probes {row.number}", at.probe_batch(row.number)),
        criterion=row.criterion,
        version=row.rubric_version,
        what=f"{counted(row.n_probes, 'probe')} of {counted(row.n_trials, 'trial')}",
        judges=counted(row.n_judges, "judge version") if row.n_judges else "no judge yet",
        reason=row.reason,
        by=row.by_name,
        at=row.made_at,
    )


def _nothing(before: int | None, at: Addresses, *, has_criteria: bool) -> pages.Empty:
    if before:
        return pages.Empty(
            "No batch before that one",
            "Go back to the newest ones.",
            pages.Link("Newest", at.probes),
        )
    sentence = (
        "A probe is a copy of a passing trial, changed on purpose. A judge that passes a wrong "
        "value, or that lets text in the trial tell it what to say, has no place in a release "
        "decision."
    )
    if not has_criteria:
        sentence += " Probes are made on criteria that judges decide, and this system has none yet."
    return pages.Empty("No probes yet", sentence)


def _new(
    access: Access, form: MakeForm, criteria: Sequence[LabelCriterion], at: Addresses
) -> ProbeForm:
    chosen = form["criterion"].value()
    kinds = form["kinds"].value() or ()
    return ProbeForm(
        form=form,
        action=f"{at.probes}new",
        criteria=tuple(
            Option(each.key, _criterion_words(each), is_selected=each.key == chosen)
            for each in criteria
        ),
        kinds=tuple(
            ProbeKindChoice(
                kind.value, KIND_NAMES[kind].capitalize(), KIND_SENTENCES[kind], kind.value in kinds
            )
            for kind in _CHANGES
        ),
        is_drawn=form.is_drawn,
        why_not=access.refusal(Act.ASK_JUDGES),
    )


def _criterion_words(each: LabelCriterion) -> str:
    version = f", version {each.rubric_version}" if each.rubric_version else ""
    tasks = f" ({counted(each.n_tasks, 'task')})" if each.n_tasks else ""
    return f"{each.name}{version}{tasks}"


# --- one batch


@require_GET
@in_system()
def probe_batch(request: SystemRequest, number: int) -> HttpResponse:
    """One batch: what was made of which trial, and what judges made of it."""
    batch = _found(request, number)
    access = request.access
    at = Addresses.of(access.system.slug)
    rows = probes_of(batch)
    judges = judges_tried(batch)
    by_trial = [list(group) for _, group in groupby(rows, key=lambda row: row.trial_pk)]
    start = _start(request.GET, len(by_trial))
    shown = by_trial[start : start + TRIALS_SHOWN]
    answers = _answers(judges[:MOST_JUDGES], {row.pk for group in shown for row in group})
    hidden = hidden_criteria(access.user.pk, access.role, [group[0].trial_pk for group in shown])
    page = ProbeBatchPage(
        shell=system_shell(access, section="Judges"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Judges", at.judges),
            Crumb("Probes", at.probes),
            Crumb(f"Probes {batch.number}"),
        ),
        heading=f"Probes {batch.number}",
        criterion=batch.criterion.name,
        question=batch.question,
        made=_made(rows, len(by_trial)),
        may_fall=MAY_FALL_SENTENCE if batch.may_fall else "",
        bundle_url=f"{at.probe_batch(batch.number)}bundle",
        api_path=f"/probes/{batch.number}/bundle",
        example=_example(batch),
        commands=(
            f"manage.py probes {access.system.slug} export {batch.number} --output bundle.jsonl",
            f"manage.py ingest verdicts.jsonl --system {access.system.slug} --release RELEASE",
        ),
        facts=tuple(_facts(batch)),
        reason=batch.reason,
        judges=tuple(_judge(each, batch, at) for each in judges[:MOST_JUDGES]),
        more_judges=(
            f"{len(judges) - MOST_JUDGES:,} more judge versions are not shown."
            if len(judges) > MOST_JUDGES
            else ""
        ),
        trials=tuple(
            _trial(group, answers, at)
            if batch.criterion.name not in hidden.get(group[0].trial_pk, ())
            else _hidden_trial(group, at)
            for group in shown
        ),
        pager=_pager(start, len(by_trial), at.probe_batch(batch.number)),
    )
    return render(request, "reviews/probe_batch.html", {"page": page})


def _start(query: QueryDict, n: int) -> int:
    """The first trial of the page, from 0; nonsense asks for the beginning."""
    text = query.get("from", "")
    first = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    return first if first < n else 0


def _pager(start: int, n: int, here: str) -> Pager:
    end = min(start + TRIALS_SHOWN, n)
    place = "#trials"
    return Pager(
        previous_url=address(here, {"from": max(start - TRIALS_SHOWN, 0) or None}, place=place)
        if start
        else "",
        next_url=address(here, {"from": end}, place=place) if end < n else "",
        words=f"{start + 1} to {end} of {counted(n, 'trial')}" if n > TRIALS_SHOWN else "",
    )


@require_GET
@in_system()
def probe_bundle(request: SystemRequest, number: int) -> HttpResponseBase:
    """The blind bundle of a batch, as a file."""
    return bundle_answer(_found(request, number))


def _found(request: SystemRequest, number: int) -> ProbeBatch:
    batch = batch_numbered(request.access.system.pk, number)
    if batch is None:
        raise Http404(_NO_BATCH)
    return batch


def _made(rows: Sequence[ProbeRow], n_trials: int) -> str:
    kinds = counted_by_kind(rows)
    each = ", ".join(f"{kinds[kind]} {KIND_NAMES[kind]}" for kind in ProbeKind if kinds[kind])
    return f"{counted(len(rows), 'probe')} of {counted(n_trials, 'trial')}: {each}"


def _example(batch: ProbeBatch) -> str:
    """A line that brings a verdict back; the name is that of no probe."""
    line = {
        "record": "verdicts",
        "external_id": "EXTERNAL_ID",
        "verdicts": [
            {
                "grader": "JUDGE",
                "grader_version": "VERSION",
                "kind": "model",
                "criterion": batch.criterion.name,
                "verdict": "pass",
                "rationale": "…",
            }
        ],
    }
    return json.dumps(line, ensure_ascii=False)


def _facts(batch: ProbeBatch) -> Iterator[pages.Fact]:
    yield pages.Fact("Made by", batch.by.printed_name)
    yield pages.Fact("When", time_text(batch.made_at))
    if batch.rubric_version:
        yield pages.Fact("Rubric version", batch.rubric_version)
    yield pages.Fact("Seed", str(batch.seed))


def _judge(each: TriedJudge, batch: ProbeBatch, at: Addresses) -> ProbeJudge:
    summary = each.summary
    if summary.has_failed:
        state = pages.Badge("failed", "fail")
        sentence = (
            f"{counted(summary.n_wrong, 'probe')} came out as none may. Its verdicts on "
            "this criterion do not count."
        )
    elif summary.n_missing or summary.n_open:
        state = pages.Badge("no wrong word", "unresolved")
        sentence = f"{counted(summary.n_right, 'probe')} came out as they must; {_waits(each)}."
    else:
        state = pages.Badge("all right", "pass")
        sentence = f"All {counted(summary.n_right, 'probe')} came out as they must."
    return ProbeJudge(
        name=f"{each.judge} {each.version}".strip(),
        href=at.judge(each.version_pk, batch.criterion_id),
        state=state,
        sentence=sentence,
        lines=tuple(
            _kind_line(kind, found)
            for kind in ProbeKind
            if (found := [probe for probe in summary.probes if probe.kind is kind])
        ),
    )


def _waits(each: TriedJudge) -> str:
    summary = each.summary
    parts = []
    if summary.n_missing:
        parts.append(f"{summary.n_missing:,} wait for a verdict")
    if summary.n_open:
        parts.append(f"{summary.n_open:,} tell nothing")
    return ", ".join(parts)


def _kind_line(kind: ProbeKind, probes: Sequence[TriedProbe]) -> ProbeKindLine:
    results = [probe.result for probe in probes if probe.result]
    words = [result.result.value for result in results if result.result]
    return ProbeKindLine(
        name=KIND_NAMES[kind],
        must=_must(kind),
        held=words.count("held"),
        fell=words.count("fell"),
        flipped=words.count("flipped"),
        right=sum(1 for result in results if result.is_right),
        wrong=sum(1 for result in results if result.is_right is False),
        open=0
        if kind is ProbeKind.CONTROL
        else sum(1 for result in results if result.is_right is None),
        missing=len(probes) - len(results),
    )


def _must(kind: ProbeKind) -> str:
    return _MUST.get(kind, "must hold")


_Answers = Mapping[int, Sequence[ProbeAnswer]]
"""What judges said, by probe."""


def _answers(judges: Sequence[TriedJudge], wanted: Collection[int]) -> _Answers:
    found: dict[int, list[ProbeAnswer]] = {}
    for judge in judges:
        for probe in judge.summary.probes:
            if probe.result and probe.pk in wanted:
                found.setdefault(probe.pk, []).append(_answer(judge, probe, probe.result))
    return found


def _trial(group: Sequence[ProbeRow], answers: _Answers, at: Addresses) -> ProbeTrial:
    ordered = sorted(group, key=lambda row: list(ProbeKind).index(row.kind))
    states = [answer.state for row in group for answer in answers.get(row.pk, ())]
    n_wrong, n_right = states.count("fail"), states.count("pass")
    return ProbeTrial(
        trial=_trial_link(group[0], at),
        below=tuple(filter(None, (group[0].release_name,))),
        probes=tuple(_line(row, answers) for row in ordered),
        not_made=tuple(
            f"{KIND_NAMES[kind].capitalize()}: {sentence}"
            for row in group
            for kind, sentence in row.not_made
        ),
        hidden="",
        badges=tuple(
            pages.Badge(f"{n:,} {word}", state)
            for n, word, state in ((n_wrong, "wrong", "fail"), (n_right, "right", "pass"))
            if n
        ),
        is_open=n_wrong > 0 or not states,
    )


def _trial_link(row: ProbeRow, at: Addresses) -> pages.Link:
    label = f"{row.task_id} · trial {trial_label(row.label, row.attempt)}"
    return pages.Link(label, at.trial(row.trial_uuid))


def _hidden_trial(group: Sequence[ProbeRow], at: Addresses) -> ProbeTrial:
    return ProbeTrial(_trial_link(group[0], at), (), (), (), _HIDDEN)


def _line(row: ProbeRow, answers: _Answers) -> ProbeLine:
    return ProbeLine(
        id=f"probe-{row.position}",
        position=row.position,
        blind_name=str(row.uuid),
        name=KIND_NAMES[row.kind],
        sentence=row.change.sentence,
        must=_must(row.kind),
        edits=tuple(map(_edit, row.change.edits)),
        answers=tuple(answers.get(row.pk, ())),
    )


def _edit(edit: Edit) -> ProbeEdit:
    return ProbeEdit(edit.place, _block(edit.before), _block(edit.after))


def _block(text: str) -> pages.TextBlock | None:
    return text_block(text, most=SHOWN_CHARACTERS, long_from=FOLDED_FROM) if text else None


def _answer(judge: TriedJudge, probe: TriedProbe, result: ProbeResult) -> ProbeAnswer:
    word, state = _WORDS[result.is_right]
    if probe.kind is ProbeKind.CONTROL and result.is_right is None:
        word, state = "unchanged", "waiting"
    said = [
        f"{one.value.value}, score {plain_score(one.score)}"
        if one.score is not None
        else one.value.value
        for one in probe.said
    ]
    return ProbeAnswer(
        judge=f"{judge.judge} {judge.version}".strip(),
        said="; ".join(said[:5]) + (f" and {len(said) - 5:,} more" if len(said) > 5 else ""),
        result=result.result.value if result.result else "",
        state=state,
        word=word,
        sentence=result.sentence,
    )
