"""Judge runs: a model asked about stored trials or probes through the operator's endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import (
    count_text,
    counted,
    duration_text,
    money_text,
    time_text,
)
from evalsite.common.shell import Crumb, Option, Pager
from evalsite.judge_runner.starting import configured_judge, start_configured
from evalsite.judge_runner.work import NOT_CONFIGURED
from reviews.core.judge_prompt import judge_version
from reviews.models import GraderVersion, JudgeRun, ProbeBatch
from reviews.selectors.blinding import hidden_criteria
from reviews.selectors.calibration_candidates import LabelCriterion
from reviews.selectors.judge_runs import (
    ITEMS,
    PAGE,
    JudgeRunItemRow,
    JudgeRunRow,
    JudgeRunTotals,
    criteria_to_judge,
    judge_run_items,
    judge_run_row,
    judge_run_rows,
    judge_run_totals,
    trials_to_judge,
)
from reviews.services.judge_runs import (
    LONGEST_REASON,
    MOST_ITEMS,
    AskedJudge,
    JudgeRunDeniedError,
    JudgeRunError,
    JudgeRunWish,
    restart_judge_run,
    stop_judge_run,
)
from traces.models import Release, System, WorkState
from traces.selectors.releases import NO_RELEASE
from traces.selectors.rules_work import percent_done
from traces.tasks import hint_judge_run
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in
from traces.web.pages.judge_runs import (
    JudgeRunCount,
    JudgeRunForm,
    JudgeRunItemLine,
    JudgeRunLine,
    JudgeRunListPage,
    JudgeRunPage,
    JudgeRunReason,
)
from traces.web.polling import polled
from traces.web.rows import trial_label
from traces.web.rule_rows import work_badge
from traces.web.shell import system_shell

HEADING = "Judge runs"
SHOWN_BATCHES = 100
SHOWN_RELEASES = 200
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_STATES = {"pass": "pass", "fail": "fail", "unknown": "unresolved", "error": "harness-error"}
_SPOKEN_ALREADY = "Ask again where this judge version has said something but error"


class RunForm(forms.Form):
    """What a judge is to be asked about."""

    criterion = forms.CharField(
        max_length=1_000, error_messages={"required": "Choose a criterion."}
    )
    release = forms.CharField(max_length=40, required=False)
    probes = forms.IntegerField(min_value=1, required=False)
    family = forms.CharField(
        max_length=200, required=False, label="Family", help_text="Empty for all families."
    )
    trials = forms.CharField(
        required=False,
        max_length=200_000,
        label="Only these trials",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text="Ids or addresses of trials, one a line.",
    )
    most = forms.IntegerField(
        min_value=1,
        max_value=MOST_ITEMS,
        initial=50,
        label="At most how many trials",
        error_messages={
            "min_value": f"A run is of 1 to {MOST_ITEMS:,} trials.",
            "max_value": f"A run is of 1 to {MOST_ITEMS:,} trials.",
            "invalid": "Give a whole number.",
            "required": "Give a whole number.",
        },
    )
    again = forms.BooleanField(required=False, label=_SPOKEN_ALREADY)
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="Why",
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Say why, in a sentence."},
    )


@dataclass(frozen=True, slots=True)
class _Choices:
    """What a run of the system can be about."""

    criteria: Sequence[LabelCriterion]
    releases: Sequence[Release]
    batches: Sequence[ProbeBatch]

    @classmethod
    def of(cls, system: System) -> _Choices:
        criteria = criteria_to_judge(system.pk)
        if not criteria:
            return cls((), (), ())
        batches = ProbeBatch.objects.filter(system=system).select_related("criterion")
        return cls(
            criteria,
            list(Release.objects.filter(system=system).order_by("-pk")[:SHOWN_RELEASES]),
            list(batches.order_by("-number")[:SHOWN_BATCHES]),
        )

    def criterion(self, key: str) -> LabelCriterion | None:
        return next((each for each in self.criteria if each.key == key), None)

    def release(self, text: str) -> Release | None:
        return next((each for each in self.releases if str(each.uuid) == text), None)

    def batch(self, number: int) -> ProbeBatch | None:
        return next((each for each in self.batches if each.number == number), None)


@require_GET
@in_system()
def judge_run_list(request: SystemRequest) -> HttpResponse:
    """The judge runs of a system, newest first, and the form that starts one."""
    return _list(request, RunForm(initial={"most": 50} | dict(request.GET.items())))


@require_POST
@in_system(Act.ASK_JUDGES)
def judge_run_new(request: SystemRequest) -> HttpResponse:
    """Have the operator's judge asked; or only count the requests that it would take."""
    access = request.access
    form = RunForm(request.POST)
    is_count = request.POST.get("act") == "count"
    form.fields["reason"].required = not is_count
    choices = _Choices.of(access.system)
    wish = _wish(access, form, choices, configured_judge())
    if wish is None:
        return _list(request, form, choices=choices, status=422)
    if is_count:
        return _list(request, form, choices=choices, asks=_asks(wish))
    try:
        run = start_configured(
            access.system,
            wish,
            reason=form.cleaned_data["reason"],
            by=access.user,
            now=timezone.now(),
        )
    except JudgeRunDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except JudgeRunError as error:
        return _list(request, form, choices=choices, error=str(error), status=422)
    hint_judge_run(run.pk)
    return redirect(Addresses.of(access.system.slug).judge_run(run.number))


def _wish(
    access: Access, form: RunForm, choices: _Choices, judge: AskedJudge | None
) -> JudgeRunWish | None:
    """What the form asks for; None, with errors in the form, where it asks for nothing."""
    if not form.is_valid():
        return None
    values = form.cleaned_data
    batch: ProbeBatch | None = None
    key = values["criterion"]
    if values["probes"]:
        batch = choices.batch(values["probes"])
        if batch is None:
            form.add_error("probes", "This system has no such batch of probes.")
            return None
        digest = batch.criterion_digest
        key = f"{digest.hex if digest else ''}:{batch.criterion.name}"
    criterion = choices.criterion(key)
    if criterion is None:
        sentence = "This system has no such criterion with a question; it may have changed since."
        form.add_error("criterion", sentence)
        return None
    release = choices.release(values["release"])
    if values["release"] and release is None:
        form.add_error("release", "This system has no such release.")
        return None
    return JudgeRunWish(
        criterion=criterion.name,
        criterion_digest=criterion.digest,
        rubric_version=criterion.rubric_version,
        question=criterion.question,
        trial_ids=() if batch else _trials(access.system, values, criterion, release, judge),
        probes=batch,
    )


def _trials(
    system: System,
    values: dict[str, Any],
    criterion: LabelCriterion,
    release: Release | None,
    judge: AskedJudge | None,
) -> Sequence[int]:
    named = tuple(dict.fromkeys(map(UUID, _UUID.findall(values["trials"]))))
    return trials_to_judge(
        system,
        criterion,
        release_pk=release.pk if release else None,
        family=values["family"],
        trials=named if values["trials"].strip() else None,
        unasked_of=None if values["again"] or judge is None else _version(system, judge, criterion),
        most=values["most"],
    )


def _version(system: System, judge: AskedJudge, criterion: LabelCriterion) -> int | None:
    """The row of the judge version that would be asked; None: it has said nothing yet."""
    found = GraderVersion.objects.filter(
        grader__system=system,
        grader__kind="model",
        grader__name=judge.name,
        version=judge_version(judge.model, criterion.rubric_version),
    )
    return found.values_list("pk", flat=True).first()


def _asks(wish: JudgeRunWish) -> str:
    if wish.probes is not None:
        n, what = wish.probes.probes.count(), "probe"
    else:
        n, what = len(wish.trial_ids), "trial"
    if not n:
        return "This sends no request: there is nothing to ask the judge about."
    return f"This sends {counted(n, 'request')}: one for each of {counted(n, what)}."


def _list(
    request: SystemRequest,
    form: RunForm,
    *,
    choices: _Choices | None = None,
    asks: str = "",
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    before = number_in(request, "before") if request.method == "GET" else None
    found = judge_run_rows(access.system, before=before)
    rows = found[:PAGE]
    choices = choices or _Choices.of(access.system)
    judge = configured_judge()
    page = JudgeRunListPage(
        shell=system_shell(access, section="Judges"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("Judges", at.judges), Crumb(HEADING)),
        rows=tuple(_line(row, at) for row in rows),
        pager=Pager(
            previous_url=at.judge_runs if before else "",
            next_url=address(at.judge_runs, {"before": rows[-1].number})
            if len(found) > PAGE
            else "",
        ),
        empty=None if rows else _empty(before, choices),
        not_set_up="" if judge else NOT_CONFIGURED,
        new=_form(access, form, choices, judge, at, asks=asks, error=error)
        if choices.criteria and judge
        else None,
    )
    return render(request, "reviews/judge_run_list.html", {"page": page}, status=status)


def _form(
    access: Access,
    form: RunForm,
    choices: _Choices,
    judge: AskedJudge,
    at: Addresses,
    *,
    asks: str,
    error: str,
) -> JudgeRunForm:
    chosen = {name: str(form[name].value() or "") for name in ("criterion", "release", "probes")}
    return JudgeRunForm(
        form=form,
        action=f"{at.judge_runs}new",
        judge=f"{judge.name}, model {judge.model}, at {judge.endpoint}",
        criteria=tuple(
            Option(each.key, _criterion_label(each), is_selected=each.key == chosen["criterion"])
            for each in choices.criteria
        ),
        releases=(
            Option("", "All releases", is_selected=not chosen["release"]),
            *(
                Option(
                    str(each.uuid),
                    each.name or NO_RELEASE,
                    is_selected=str(each.uuid) == chosen["release"],
                )
                for each in choices.releases
            ),
        ),
        batches=(
            Option("", "No: about stored trials", is_selected=not chosen["probes"]),
            *(
                Option(
                    str(each.number),
                    f"Probes {each.number}, on {each.criterion.name}",
                    is_selected=str(each.number) == chosen["probes"],
                )
                for each in choices.batches
            ),
        ),
        asks=asks,
        error=error,
        why_not=access.refusal(Act.ASK_JUDGES),
    )


def _criterion_label(criterion: LabelCriterion) -> str:
    version = f", version {criterion.rubric_version}" if criterion.rubric_version else ""
    return f"{criterion.name}{version}"


def _empty(before: int | None, choices: _Choices) -> pages.Empty:
    if before:
        return pages.Empty("No judge run before that one", "Go back to the newest ones.")
    sentence = (
        "A judge run sends one criterion's question and the evidence of each trial to a model, and "
        "keeps what it says as verdicts. They count only while the judge is calibrated."
    )
    if not choices.criteria:
        sentence += (
            " This system has no criterion with a question yet: write a rubric, or name one in a "
            "contract."
        )
    return pages.Empty("No judge run yet", sentence)


def _line(row: JudgeRunRow, at: Addresses) -> JudgeRunLine:
    return JudgeRunLine(
        run=pages.Link(f"Judge run {row.number}", at.judge_run(row.number)),
        badge=work_badge(row.state),
        criterion=_with_version(row),
        judge=f"{row.judge}, {row.version}",
        about=_about(row),
        errors=counted(row.n_errors, "error") if row.n_errors else "",
        cost=money_text(row.cost_usd) if row.cost_usd else "",
        reason=row.reason,
        by=row.by_name,
        at=row.asked_at,
    )


def _with_version(row: JudgeRunRow) -> str:
    version = f", version {row.rubric_version}" if row.rubric_version else ""
    return f"{row.criterion}{version}"


def _about(row: JudgeRunRow) -> str:
    what = "probe" if row.probes else "trial"
    total = row.n_total or 0
    if row.n_done >= total:
        return counted(total, what)
    return f"{row.n_done:,} of {counted(total, what)}"


# --- one run


@require_GET
@in_system()
def judge_run_page(request: SystemRequest, number: int) -> HttpResponse:
    """One judge run: how far it is, and what came of it."""
    return _page(request, _found(request, number))


@require_POST
@in_system(Act.ASK_JUDGES)
def judge_run_work(request: SystemRequest, number: int) -> HttpResponse:
    """Stop a judge run, or take it up again."""
    row = _found(request, number)
    stored = JudgeRun.objects.select_related("system").get(pk=row.pk)
    act = request.POST.get("act", "")
    try:
        if act == "stop":
            stop_judge_run(stored, by=request.access.user, now=timezone.now())
        elif act == "restart":
            restart_judge_run(stored, by=request.access.user, now=timezone.now())
            hint_judge_run(stored.pk)
        else:
            return _page(request, row, error="Say whether to stop or to restart the run.")
    except JudgeRunError as error:
        return _page(request, _found(request, number), error=str(error))
    return redirect(Addresses.of(request.access.system.slug).judge_run(number))


def _found(request: SystemRequest, number: int) -> JudgeRunRow:
    row = judge_run_row(request.access.system, number)
    if row is None:
        raise Http404("There is no such judge run in this system.")
    return row


def _page(request: SystemRequest, row: JudgeRunRow, *, error: str = "") -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    here = at.judge_run(row.number)
    totals = judge_run_totals(row.pk)
    after = number_in(request, "after") or 0
    only_errors = request.GET.get("show") == "errors"
    found = judge_run_items(row.pk, after=after, only_errors=only_errors)
    items = found[:ITEMS]
    query: dict[str, str | int] = {"show": "errors"} if only_errors else {}
    hidden = hidden_criteria(
        access.user.pk, access.role, [item.trial_pk for item in items if item.trial_pk]
    )
    page = JudgeRunPage(
        shell=system_shell(access, section="Judges"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Judges", at.judges),
            Crumb(HEADING, at.judge_runs),
            Crumb(f"Judge run {row.number}"),
        ),
        heading=f"Judge run {row.number}",
        sentence=_sentence(row),
        badge=work_badge(row.state),
        error=error,
        work=_work(row, at, why_not=access.refusal(Act.ASK_JUDGES)),
        poll_url=here if row.is_open else "",
        refresh_url=here,
        counts=tuple(JudgeRunCount(word, _STATES[word], n) for word, n in totals.by_value),
        reasons=tuple(JudgeRunReason(sentence, n) for sentence, n in totals.by_failure),
        items=tuple(
            _item(
                item,
                row,
                at,
                is_hidden=row.criterion in hidden.get(item.trial_pk or 0, frozenset()),
            )
            for item in items
        ),
        items_note="Only those that ended as errors." if only_errors else "",
        pager=Pager(
            previous_url=address(here, query) if after else "",
            next_url=address(here, query | {"after": items[-1].position})
            if len(found) > ITEMS
            else "",
        ),
        only_errors=_only_errors(here, row, only_errors=only_errors),
        facts=tuple(_facts(row, totals, at)),
        reason=row.reason,
        question=JudgeRun.objects.values_list("question", flat=True).get(pk=row.pk),
    )
    answer = render(
        request, "reviews/judge_run_detail.html", {"page": page}, status=422 if error else 200
    )
    return polled(request, answer, is_moving=bool(page.poll_url))


def _sentence(row: JudgeRunRow) -> str:
    what = f"the copies of probes {row.probes}" if row.probes else "stored trials"
    return f"{row.judge} asked about {what} on {_with_version(row)}. Its verdicts count only while it is calibrated."


def _only_errors(here: str, row: JudgeRunRow, *, only_errors: bool) -> pages.Link | None:
    if only_errors:
        return pages.Link("Show all", here)
    return pages.Link("Show errors only", f"{here}?show=errors") if row.n_errors else None


def _work(row: JudgeRunRow, at: Addresses, *, why_not: str) -> pages.Work | None:
    if row.state is WorkState.DONE:
        return None
    heading = {
        WorkState.WAITING: "It waits for a worker",
        WorkState.WORKING: "The judge is being asked",
        WorkState.CANCELLED: f"Stopped by {row.cancelled_by or 'the operator'}",
        WorkState.FAILED: "It could not go on",
    }[row.state]
    what = "probe" if row.probes else "trial"
    return pages.Work(
        heading=heading,
        sentence=f"{row.n_done:,} of {counted(row.n_total or 0, what)} done. What was answered stays.",
        badge=work_badge(row.state),
        percent=percent_done(row.n_done, row.n_total) if row.is_open else None,
        is_moving=row.is_open,
        failure=row.failure,
        action=f"{at.judge_run(row.number)}work",
        may_stop=not why_not and row.is_open,
        may_restart=not why_not and not row.is_open,
        why_not=why_not,
    )


def _item(
    item: JudgeRunItemRow, row: JudgeRunRow, at: Addresses, *, is_hidden: bool
) -> JudgeRunItemLine:
    word, state = item.value, _STATES.get(item.value, "")
    if item.done_at is not None and not item.value:
        word = "not asked"
    if is_hidden and item.done_at is not None:
        word, state = "hidden: in a blind set", ""
    took = "" if item.seconds is None else duration_text(item.seconds)
    if item.n_tries > 1:
        took += f", {counted(item.n_tries, 'try', 'tries')}"
    return JudgeRunItemLine(
        position=item.position,
        thing=_thing(item, row, at),
        release=f"release {item.release or NO_RELEASE}" if item.trial_uuid else "",
        word=word,
        state=state,
        why="" if is_hidden else item.failure,
        took=took,
        cost="" if item.cost_usd is None else money_text(item.cost_usd),
    )


def _thing(item: JudgeRunItemRow, row: JudgeRunRow, at: Addresses) -> pages.Link:
    if item.trial_uuid is None:
        return pages.Link(f"Probe {item.probe}", at.probe_batch(row.probes or 0))
    label = trial_label(item.trial_label, item.attempt)
    return pages.Link(f"{item.task_id}, trial {label}", at.trial(item.trial_uuid))


def _facts(row: JudgeRunRow, totals: JudgeRunTotals, at: Addresses) -> Iterator[pages.Fact]:
    yield pages.Fact(
        "Judge", f"{row.judge}, {row.version}", at.judge(row.judge_pk, row.criterion_pk)
    )
    yield pages.Fact("Endpoint", row.endpoint)
    yield pages.Fact("Criterion", _with_version(row))
    if row.probes:
        yield pages.Fact("Probes", f"Probes {row.probes}", at.probe_batch(row.probes))
    yield pages.Fact("Asked for by", row.by_name)
    yield pages.Fact("When", time_text(row.asked_at))
    yield pages.Fact("Requests", count_text(totals.n_tries))
    yield pages.Fact(
        "Tokens",
        f"{count_text(totals.input_tokens)} sent, {count_text(totals.output_tokens)} answered"
        if totals.input_tokens or totals.output_tokens
        else "not told by the endpoint",
    )
    yield pages.Fact("Cost", _cost(row, totals))


def _cost(row: JudgeRunRow, totals: JudgeRunTotals) -> str:
    if not totals.n_with_cost:
        return "not known"
    n_without = row.n_done - totals.n_with_cost
    without = f", without {counted(n_without, 'request')} of unknown cost" if n_without else ""
    return f"{money_text(row.cost_usd)}{without}"
