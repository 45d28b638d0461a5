"""The calibration card of a judge version on a criterion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from evalsite.access import Access, Act
from evalsite.common.formatting import NOTHING, count_text, counted, relative_text
from evalsite.common.shell import Choice, Crumb, Figure
from evalsite.web.judge_items import AskedItems, ItemLinks, item_list
from evalsite.web.judge_words import (
    STATUS_STATES,
    bound_text,
    date_text,
    errors_words,
    labels_words,
    needs_words,
    rate_text,
    said_words,
    votes_words,
)
from evalsite.web.overview_words import columns, interval_words
from reviews.charts.judges import RateRow, agreement_by_family, bounds_against_limits
from reviews.core.agreement import Kappa, cohen_kappa, observed_agreement
from reviews.core.calibration import (
    DATE_PASSED,
    DECIDED,
    DEFAULT_LIMITS,
    CalibrationFigures,
    CalibrationStatus,
    ErrorRate,
    HeldAgainst,
    Needs,
    figures_document,
    parse_needs,
    status_of,
)
from reviews.core.estimators import clopper_pearson, lower_bound
from reviews.core.probes import KIND_NAMES, KIND_SENTENCES, ProbeKind
from reviews.selectors.judge_cards import CardPart, CriterionText, JudgeCard
from reviews.selectors.judges import StoredCalibration
from reviews.selectors.probes import ProbeSummary, TriedProbe
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.pages.judges import (
    AgreementTable,
    ApartFigures,
    BoundBar,
    HistoryRow,
    JudgeCardPage,
    JudgeNumber,
    ProbeLine,
    ProbeResults,
    TableCell,
)
from traces.web.pages.overview import Cell, FigureTable
from traces.web.shell import system_shell

TOO_FEW = "too few to tell"
CANNOT_TELL = "cannot tell"
MOST_FAMILIES = 40
MOST_VERSIONS = 12
MOST_WRONG = 10  # probes of one kind that are linked
NO_TEXT = "-"
NOT_READ = "Its status was not read yet."
CHANGED = "Labels or verdicts changed since its status was read. Read it again."
_LIMITS = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class CardView:
    """What the parts of the card need: the card, and where links lead."""

    card: JudgeCard
    at: Addresses
    asked: AskedItems
    now: datetime

    @property
    def url(self) -> str:
        return self.at.judge(self.card.judge.version_pk, self.card.judge.criterion_pk)

    @property
    def kept(self) -> dict[str, Value]:
        """What addresses of this card keep: the text, where there are several."""
        return {"text": text_value(self.card.text)} if len(self.card.texts) > 1 else {}

    @property
    def links(self) -> ItemLinks:
        return ItemLinks(self.url, self.kept)

    @property
    def figures(self) -> CalibrationFigures:
        return self.card.labelled.figures

    @property
    def has_enough(self) -> bool:
        """Whether there are labels enough to tell anything."""
        figures = self.figures
        return figures.n_checked >= _LIMITS.min_items and figures.n_people >= _LIMITS.min_people


def text_value(text: CriterionText) -> str:
    """A text of a criterion as an address names it."""
    return text.digest.hex if text.digest else NO_TEXT


def card_page(
    card: JudgeCard,
    *,
    access: Access,
    asked: AskedItems,
    tried: ProbeSummary,
    hidden: Collection[int],
    notices: tuple[pages.Notice, ...],
    now: datetime,
) -> JudgeCardPage:
    """The page of a card. `hidden` holds the trials whose labels are kept from the reader."""
    at = Addresses.of(access.system.slug)
    view = CardView(card, at, asked, now)
    judge, stored = card.judge, card.stored
    status = stored.status_at(now) if stored else CalibrationStatus.EXPLORATORY
    name = f"{judge.judge} {judge.version}".strip()
    return JudgeCardPage(
        shell=system_shell(access, section="Judges"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Judges", at.judges),
            Crumb(f"{name} on {judge.criterion}"),
        ),
        title=judge.judge,
        version=judge.version,
        criterion=judge.criterion,
        sub=_sub(view),
        texts=_texts(view),
        versions=_versions(view),
        status=pages.Badge(status.value, STATUS_STATES[status]),
        answer=votes_words(stored, now=now),
        why=_why(view),
        needs=needs_words(_needs(view)),
        notices=(*notices, *_notices(view)),
        read_action=f"{view.url}read" if access.may(Act.REVIEW) else "",
        read_fields=(("text", text_value(card.text)),),
        why_not=access.refusal(Act.REVIEW),
        acts=tuple(_acts(view, access)),
        csv_url=address(view.url, {**view.kept, "format": "csv"}),
        json_url=address(view.url, {**view.kept, "format": "json"}),
        numbers=_numbers(view),
        chart=_bounds_chart(view),
        table=_table(view),
        facts=tuple(_facts(view)),
        families=_families(view),
        family_chart=_family_chart(view),
        apart=tuple(_apart(view)),
        probes=_probes(view, tried) if tried.probes else None,
        history=tuple(_history_row(each) for each in card.history),
        items=item_list(card, asked, view.links, at=at, hidden=hidden),
    )


def _sub(view: CardView) -> tuple[pages.Link, ...]:
    judge, text = view.card.judge, view.card.text
    parts = [pages.Link(counted(judge.said.n, "verdict"), title=said_words(judge.said))]
    if judge.said.last_at:
        parts.append(pages.Link(f"last used {date_text(judge.said.last_at)}"))
    if text.rubric_version:
        parts.append(pages.Link(f"rubric version {text.rubric_version}"))
    elif text.digest is None:
        parts.append(pages.Link("criterion of tasks without a contract"))
    return tuple(parts)


def _texts(view: CardView) -> tuple[Choice, ...]:
    texts = view.card.texts
    if len(texts) < 2:
        return ()
    return tuple(
        Choice(
            _text_name(each),
            address(view.url, {"text": text_value(each)}),
            is_current=each == view.card.text,
        )
        for each in texts
    )


def _text_name(text: CriterionText) -> str:
    if text.digest is None:
        return "without a contract"
    named = f"version {text.rubric_version}" if text.rubric_version else "text"
    return f"{named} ({text.digest.hex[:8]})"


def _versions(view: CardView) -> tuple[Choice, ...]:
    versions = view.card.versions
    if len(versions) < 2:
        return ()
    return tuple(
        Choice(
            each.version or "no version",
            view.at.judge(each.version_pk, each.criterion_pk),
            is_current=each.version_pk == view.card.judge.version_pk,
            help=each.status_at(view.now).value,
        )
        for each in versions[:MOST_VERSIONS]
    )


def _why(view: CardView) -> str:
    stored = view.card.stored
    if stored is None:
        assessment = status_of(view.figures)
        is_exploratory = assessment.status is CalibrationStatus.EXPLORATORY
        return assessment.why if is_exploratory else NOT_READ
    has_passed = stored.status_at(view.now) is not stored.status
    return DATE_PASSED if has_passed else stored.why


def _needs(view: CardView) -> Needs:
    stored = view.card.stored
    return parse_needs(stored.document) if stored else status_of(view.figures).needs


def _notices(view: CardView) -> Iterable[pages.Notice]:
    stored = view.card.stored
    if stored is not None and not _is_up_to_date(stored, view.figures):
        yield pages.Notice(CHANGED, level="warning")


def _is_up_to_date(stored: StoredCalibration, figures: CalibrationFigures) -> bool:
    """Whether the status was read from the figures as they are now."""
    now = figures_document(figures)
    return all(stored.document.get(name) == value for name, value in now.items())


def _acts(view: CardView, access: Access) -> Iterable[pages.Link]:
    card = view.card
    if access.may(Act.REVIEW):
        yield pages.Link(
            "Make a calibration set",
            address(
                view.at.new_calibration_set,
                {"criterion": card.criterion.name, "digest": card.text.digest},
            ),
        )
    if access.may(Act.ASK_JUDGES):
        yield pages.Link(
            "Make probes", address(f"{view.at.probes}new", {"criterion": card.criterion.name})
        )


# --- the numbers


def _numbers(view: CardView) -> tuple[JudgeNumber, ...]:
    held = view.figures.held
    return (
        _error_number(
            view, "False passes", held.false_pass, _LIMITS.false_pass, "failed", "false_pass"
        ),
        _error_number(
            view, "False failures", held.false_fail, _LIMITS.false_fail, "passed", "false_fail"
        ),
        _agreement_number(held),
        _kappa_number(held),
    )


def _error_number(
    view: CardView, label: str, errors: ErrorRate, limit: Fraction, side: str, show: str
) -> JudgeNumber:
    bound = errors.bound
    links = view.links
    limit_words = f"limit {rate_text(limit)}"
    found = (
        pages.Link(counted(errors.n_errors, label.lower()[:-1], label.lower()), links.to(show))
        if errors.n_errors
        else None,
        pages.Link(counted(errors.n, "item"), links.to(f"people_{side}")) if errors.n else None,
    )
    number = JudgeNumber(
        label,
        CANNOT_TELL,
        errors_words(errors, side),
        lines=(f"People {side} no item that it decided; {limit_words}.",),
        links=tuple(link for link in found if link),
    )
    if bound is None:
        return number
    words = f"true rate at most {bound_text(bound, limit)}, one-sided 95%; {limit_words}"
    number = replace(number, bar=_bound_bar(errors, bound, limit, words))
    if not view.has_enough:
        return replace(number, value=TOO_FEW, state="unresolved", lines=(f"So far: {words}.",))
    is_within = Fraction(bound) <= limit
    return replace(
        number,
        value=f"≤ {bound_text(bound, limit)}",
        state="pass" if is_within else "fail" if errors.n_errors else "unresolved",
        lines=(f"{'Within' if is_within else 'Above'} its limit: {words}.",),
    )


def _bound_bar(errors: ErrorRate, bound: float, limit: Fraction, words: str) -> BoundBar:
    low = lower_bound(errors.n_errors, errors.n) or 0.0
    rate = float(errors.rate or 0)
    longest = min(max(3 * float(limit), bound), 1.0)

    def place(at: float) -> str:
        return f"{100 * at / longest:.1f}"

    return BoundBar(
        words=f"{rate_text(rate)} of items; {words}; drawn from 0% to {rate_text(longest)}",
        low=place(low),
        width=place(bound - low),
        value=place(rate),
        limit=place(float(limit)),
    )


def _agreement_number(held: HeldAgainst) -> JudgeNumber:
    agreement = held.agreement
    if agreement is None:
        return JudgeNumber(
            "Agreement",
            CANNOT_TELL,
            "no item of a random sample",
            lines=("Agreement is read on random samples only.",),
        )
    interval = clopper_pearson(held.random.n_alike, held.random.n)
    return JudgeNumber(
        "Agreement",
        rate_text(agreement),
        f"{count_text(held.random.n_alike)} of {counted(held.random.n, 'random item')}",
        lines=(f"95% interval {interval_words(interval)}. For reading only.",),
    )


def _kappa_number(held: HeldAgainst) -> JudgeNumber:
    kappa = held.kappa
    if kappa is None:
        why = (
            "no item of a random sample"
            if not held.random.n
            else "people gave one answer only, so chance alone explains any agreement"
        )
        return JudgeNumber("Cohen's kappa", CANNOT_TELL, why)
    return JudgeNumber(
        "Cohen's kappa",
        _kappa_text(kappa.value),
        f"over {counted(held.random.n, 'random item')}",
        lines=(f"{_kappa_interval(kappa)} For reading only.",),
    )


def _kappa_text(value: Fraction | float) -> str:
    return f"{float(value):.2f}".replace("-", "−")


def _kappa_interval(kappa: Kappa) -> str:
    if kappa.low is None or kappa.high is None:
        return "Its interval cannot be told."
    return f"95% interval {_kappa_text(kappa.low)} to {_kappa_text(kappa.high)}."


def _bounds_chart(view: CardView) -> pages.Chart | None:
    held = view.figures.held
    sides = (
        ("False passes", held.false_pass, _LIMITS.false_pass, "failed"),
        ("False failures", held.false_fail, _LIMITS.false_fail, "passed"),
    )
    drawn = [
        (name, errors, limit, side, bound)
        for name, errors, limit, side in sides
        if (bound := errors.bound) is not None
    ]
    if not drawn:
        return None
    rows = [
        RateRow(
            name,
            _percent(errors.rate),
            _percent(lower_bound(errors.n_errors, errors.n)),
            _percent(bound),
            f"{errors.n_errors} of {errors.n}",
        )
        for name, errors, _, _, bound in drawn
    ]
    return pages.Chart(
        id="bounds-chart",
        title="Bounds against their limits",
        sentence="the upper end of each interval must not pass its limit",
        figure=bounds_against_limits(rows, [_percent(limit) for _, _, limit, _, _ in drawn]),
        columns=("Rate", "Errors", "Items", "Rate of items", "At least", "At most", "Limit"),
        rows=tuple(
            (
                f"{name}, of items that people {side}",
                count_text(errors.n_errors),
                count_text(errors.n),
                rate_text(errors.rate or 0),
                rate_text(lower_bound(errors.n_errors, errors.n) or 0),
                bound_text(bound, limit),
                rate_text(limit),
            )
            for name, errors, limit, side, bound in drawn
        ),
    )


def _percent(rate: Fraction | float | None) -> float:
    return round(100 * float(rate or 0), 2)


# --- tables


def _table(view: CardView) -> AgreementTable | None:
    table = view.figures.held.table
    if not table.n:
        return None
    passed, failed = DECIDED
    shows = {
        (passed, passed): ("both_pass", "both pass", False),
        (passed, failed): ("false_fail", "false failure", True),
        (failed, passed): ("false_pass", "false pass", True),
        (failed, failed): ("both_fail", "both fail", False),
    }

    def cell(people: str, judge: str) -> TableCell:
        show, words, is_wrong = shows[people, judge]
        n = table.count(people, judge)
        href = view.links.to(show) if n else ""
        return TableCell(count_text(n), href, words, is_wrong=is_wrong and n > 0)

    return AgreementTable(
        rows=(
            ("People pass", cell(passed, passed), cell(passed, failed)),
            ("People fail", cell(failed, passed), cell(failed, failed)),
        )
    )


def _facts(view: CardView) -> Iterable[pages.Fact]:
    figures, links = view.figures, view.links

    def linked(name: str, n: int, noun: str, show: str) -> pages.Fact:
        return pages.Fact(name, counted(n, noun), links.to(show) if n else "")

    yield pages.Fact("Labels", labels_words(figures))
    yield pages.Fact(
        "Items", counted(figures.n_items, "item"), links.to() if figures.n_items else ""
    )
    share = figures.held.prevalence
    yield pages.Fact(
        "People pass",
        CANNOT_TELL + ": no random sample"
        if share is None
        else f"{rate_text(share)} of {counted(figures.held.random.n, 'random item')}",
    )
    yield from _people_facts(view)
    undecided = figures.n_unknown + figures.n_split
    yield linked("People undecided", undecided, "item", "people_undecided")
    yield linked("Judge changed its mind", figures.n_flips, "item", "flips")
    by_judge = figures.n_judge_unknown + figures.n_judge_error + figures.n_judge_none
    yield linked("Judge undecided", by_judge, "item", "judge_undecided")
    yield pages.Fact("Newest label", _age(figures.newest_label, view.now))
    yield pages.Fact("Oldest label", _age(figures.oldest_label, view.now))
    stored = view.card.stored
    yield pages.Fact("Status read", _age(stored.read_at, view.now) if stored else "never")


def _people_facts(view: CardView) -> Iterable[pages.Fact]:
    figures = view.figures
    agreement = observed_agreement(figures.people)
    if agreement is None:
        yield pages.Fact("People agree", CANNOT_TELL + ": no item has two labels")
        return
    table = figures.people
    differ = table.n - table.n_alike
    yield pages.Fact(
        "People agree",
        f"{rate_text(agreement)} ({count_text(table.n_alike)} of {counted(table.n, 'item')})",
        view.links.to("people_differ") if differ else "",
    )
    kappa = figures.people_kappa
    yield pages.Fact(
        "Kappa of people",
        CANNOT_TELL + ": they gave one answer only"
        if kappa is None
        else f"{_kappa_text(kappa.value)}. {_kappa_interval(kappa)}",
    )


def _age(at: datetime | None, now: datetime) -> str:
    if at is None:
        return NOTHING
    ago = relative_text(at, now=now)
    day = date_text(at)
    return day if ago == day else f"{day}, {ago}"


def _families(view: CardView) -> FigureTable | None:
    families = [each for each in view.figures.families if each.held.n]
    if not families or (len(families) == 1 and not families[0].family):
        return None
    rows = tuple(
        (
            Cell(each.family or "no family", href=view.links.to("", family=each.family)),
            Cell(count_text(each.held.n), is_number=True),
            _error_cell(view, each.held.false_pass, "false_pass", each.family, _LIMITS.false_pass),
            _error_cell(view, each.held.false_fail, "false_fail", each.family, _LIMITS.false_fail),
            _agreement_cell(each.held),
        )
        for each in families
    )
    return FigureTable(
        id="by-family",
        title="By family",
        sentence="wrong of items that both decided; the bound decides over all families together",
        columns=columns("Family", "Items", "False passes", "False failures", "Agreement"),
        rows=rows[:MOST_FAMILIES],
        more=rows[MOST_FAMILIES:],
        more_words=f"{counted(max(len(rows) - MOST_FAMILIES, 0), 'more family', 'more families')}",
    )


def _error_cell(view: CardView, errors: ErrorRate, show: str, family: str, limit: Fraction) -> Cell:
    bound = errors.bound
    return Cell(
        f"{count_text(errors.n_errors)} of {count_text(errors.n)}",
        href=view.links.to(show, family=family) if errors.n_errors else "",
        note=CANNOT_TELL if bound is None else f"at most {bound_text(bound, limit)}",
        is_number=True,
    )


def _agreement_cell(held: HeldAgainst) -> Cell:
    agreement = held.agreement
    if agreement is None:
        return Cell(CANNOT_TELL, note="no random item", is_number=True)
    note = f"{count_text(held.random.n_alike)} of {count_text(held.random.n)}"
    return Cell(rate_text(agreement), note=note, is_number=True)


def _family_chart(view: CardView) -> pages.Chart | None:
    families = [each for each in view.figures.families if each.held.random.n]
    if len(families) < 2:
        return None
    drawn = sorted(families, key=lambda each: (-each.held.random.n, each.family))[:MOST_FAMILIES]
    rows: list[RateRow] = []
    cells: list[tuple[str, ...]] = []
    for each in drawn:
        table = each.held.random
        interval = clopper_pearson(table.n_alike, table.n)
        if interval is None:
            continue
        name = each.family or "no family"
        words = f"{table.n_alike} of {table.n}"
        value = _percent(each.held.agreement)
        rows.append(RateRow(name, value, _percent(interval.low), _percent(interval.high), words))
        agreement = rate_text(each.held.agreement or 0)
        cells.append((name, words, agreement, rate_text(interval.low), rate_text(interval.high)))
    return pages.Chart(
        id="family-chart",
        title="Agreement by family",
        sentence="random items only, with the 95% interval (Clopper-Pearson, two-sided)",
        figure=agreement_by_family(rows),
        columns=("Family", "Alike", "Agreement", "Low", "High"),
        rows=tuple(cells),
    )


# --- apart


def _apart(view: CardView) -> Iterable[ApartFigures]:
    card = view.card
    if card.adjudicated.items:
        yield _apart_of(
            view,
            card.adjudicated,
            "adjudicated",
            "Against adjudications",
            "Reviewers decided these because graders disagreed: a selection, which decides nothing "
            "here.",
        )
    if card.exploratory.items:
        yield _apart_of(
            view,
            card.exploratory,
            "exploratory",
            "Against imported labels that nobody vouched for",
            "Exploratory: they decide nothing until a reviewer vouches for their set.",
        )


def _apart_of(view: CardView, part: CardPart, name: str, title: str, sentence: str) -> ApartFigures:
    held, links = part.figures.held, view.links
    figures = [
        _apart_figure("False passes", held.false_pass, "failed", links.to("false_pass", part=name)),
        _apart_figure(
            "False failures", held.false_fail, "passed", links.to("false_fail", part=name)
        ),
    ]
    if name == "exploratory":
        figures += _exploratory_figures(part.figures)
    return ApartFigures(
        title=title,
        sentence=sentence,
        figures=tuple(figures),
        link=pages.Link(counted(len(part.items), "item"), links.to(part=name)),
    )


def _apart_figure(label: str, errors: ErrorRate, side: str, href: str) -> Figure:
    bound = errors.bound
    return Figure(
        label,
        f"{count_text(errors.n_errors)} of {count_text(errors.n)}",
        detail=f"that people {side}"
        + (f", at most {rate_text(bound)}" if bound is not None else ""),
        href=href if errors.n_errors else "",
    )


def _exploratory_figures(figures: CalibrationFigures) -> Sequence[Figure]:
    held = figures.held
    table = held.random if held.random.n else held.table
    sample = "random items" if held.random.n else "items, not known to be a random sample"
    agreement, kappa = observed_agreement(table), cohen_kappa(table)
    people, between = figures.people_agreement, figures.people_kappa
    return (
        Figure(
            "Agreement",
            CANNOT_TELL if agreement is None else rate_text(agreement),
            detail=f"over {count_text(table.n)} {sample}",
        ),
        Figure(
            "Cohen's kappa",
            CANNOT_TELL if kappa is None else _kappa_text(kappa.value),
            detail="" if kappa is None else _kappa_interval(kappa),
        ),
        Figure(
            "People agree",
            CANNOT_TELL if people is None else rate_text(people),
            detail=_between_words(figures.people.n, between),
        ),
    )


def _between_words(n: int, between: Kappa | None) -> str:
    if not n:
        return "no item has two labels"
    over = f"over {counted(n, 'item')}"
    return over if between is None else f"kappa {_kappa_text(between.value)}, {over}"


def _probes(view: CardView, tried: ProbeSummary) -> ProbeResults:
    """How the judge came out of its probes, by kind."""
    rows = [
        _probe_line(view, kind, [each for each in tried.probes if each.kind is kind])
        for kind in ProbeKind
    ]
    sentence = (
        f"{counted(tried.n_wrong, 'probe')} came out as {'it' if tried.n_wrong == 1 else 'they'} "
        "must not: a judge with one such probe does not vote."
        if tried.n_wrong
        else f"{count_text(tried.n_right)} of {counted(len(tried.probes), 'probe')} came out as "
        "they must, and none as it must not."
    )
    return ProbeResults(
        sentence=sentence,
        rows=tuple(row for row in rows if row is not None),
        link=pages.Link("all probes", view.at.probes),
    )


def _probe_line(view: CardView, kind: ProbeKind, tried: Sequence[TriedProbe]) -> ProbeLine | None:
    if not tried:
        return None
    wrong = [each for each in tried if each.result and each.result.is_right is False]
    n_right = sum(1 for each in tried if each.result and each.result.is_right)
    return ProbeLine(
        kind=KIND_NAMES[kind],
        must=KIND_SENTENCES[kind],
        n_right=n_right,
        n_wrong=len(wrong),
        n_open=len(tried) - n_right - len(wrong),
        links=tuple(
            pages.Link(
                f"batch {each.batch_number}, probe {each.position}",
                f"{view.at.probe_batch(each.batch_number)}#probe-{each.position}",
            )
            for each in wrong[:MOST_WRONG]
        ),
    )


def _history_row(stored: StoredCalibration) -> HistoryRow:
    return HistoryRow(
        at=stored.read_at,
        status=pages.Badge(stored.status.value, STATUS_STATES[stored.status]),
        why=stored.why,
        by=stored.by_name,
        until=f"until {date_text(stored.valid_until)}" if stored.valid_until else "",
    )
