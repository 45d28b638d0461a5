"""The labelled items behind the numbers of a judge's card, as a list and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from evalsite.common.formatting import count_text, counted
from evalsite.common.shell import Choice, Pager
from reviews.core.calibration import JudgeWord, LabelledItem
from reviews.core.consensus import Consensus
from reviews.selectors.judge_cards import CardItem, CardPart, JudgeCard
from traces.core.text_marks import csv_safe
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.pages.judges import ItemList, ItemRow
from traces.web.rows import trial_label

PAGE = 25  # items
PLACE = "#items"

_SAID = {
    Consensus.PASS: ("pass", "pass"),
    Consensus.FAIL: ("fail", "fail"),
    Consensus.UNKNOWN: ("unresolved", "cannot tell"),
    Consensus.SPLIT: ("unresolved", "split"),
}
_WORDS = {
    JudgeWord.PASS: ("pass", "pass"),
    JudgeWord.FAIL: ("fail", "fail"),
    JudgeWord.FLIP: ("fail", "pass and fail"),
    JudgeWord.UNKNOWN: ("unresolved", "unknown"),
    JudgeWord.ERROR: ("harness-error", "error"),
    JudgeWord.NONE: ("", "no verdict"),
}
_DECIDED_BY_PEOPLE = (Consensus.PASS, Consensus.FAIL)
_DECIDED_BY_JUDGE = (JudgeWord.PASS, JudgeWord.FAIL, JudgeWord.FLIP)


def is_decided(item: LabelledItem) -> bool:
    """Whether people and judge both decided it: it stands in the rates."""
    return item.consensus in _DECIDED_BY_PEOPLE and item.word in _DECIDED_BY_JUDGE


def is_false_pass(item: LabelledItem) -> bool:
    """Whether people failed what the judge passed, in one of its verdicts at least."""
    return item.consensus is Consensus.FAIL and item.word in (JudgeWord.PASS, JudgeWord.FLIP)


def is_false_fail(item: LabelledItem) -> bool:
    """Whether people passed what the judge failed, in one of its verdicts at least."""
    return item.consensus is Consensus.PASS and item.word in (JudgeWord.FAIL, JudgeWord.FLIP)


def _is_both(consensus: Consensus, word: JudgeWord) -> Callable[[LabelledItem], bool]:
    return lambda item: item.consensus is consensus and item.word is word


SHOWN: dict[str, tuple[str, Callable[[LabelledItem], bool]]] = {
    "": ("all", lambda _: True),
    "false_pass": ("false passes", is_false_pass),
    "false_fail": ("false failures", is_false_fail),
    "both_pass": ("both pass", _is_both(Consensus.PASS, JudgeWord.PASS)),
    "both_fail": ("both fail", _is_both(Consensus.FAIL, JudgeWord.FAIL)),
    "people_failed": (
        "people failed",
        lambda item: item.consensus is Consensus.FAIL and is_decided(item),
    ),
    "people_passed": (
        "people passed",
        lambda item: item.consensus is Consensus.PASS and is_decided(item),
    ),
    "flips": (
        "judge changed its mind",
        lambda item: item.consensus in _DECIDED_BY_PEOPLE and item.word is JudgeWord.FLIP,
    ),
    "people_undecided": (
        "people undecided",
        lambda item: item.consensus not in _DECIDED_BY_PEOPLE,
    ),
    "judge_undecided": (
        "judge undecided",
        lambda item: item.consensus in _DECIDED_BY_PEOPLE and item.word not in _DECIDED_BY_JUDGE,
    ),
    "people_differ": (
        "first two labels differ",
        lambda item: len({label.value for label in item.labels if label.round < 3}) > 1,
    ),
}
"""Which items an address may ask for, in words."""

PARTS = {
    "": "blind labels that count",
    "adjudicated": "adjudications",
    "exploratory": "imported labels that nobody vouched for",
}


@dataclass(frozen=True, slots=True)
class AskedItems:
    """Which items the address asks for. Nonsense asks for all."""

    part: str = ""
    show: str = ""
    family: str | None = None
    after: str = ""  # key of the last item of the page before

    @property
    def values(self) -> dict[str, Value]:
        """What an address says of them, but the place in the list."""
        return {
            "items": self.part,
            "show": self.show,
            "family": None if self.family is None else self.family or "-",
        }


class ItemLinks:
    """Addresses of the items behind the numbers of one card."""

    def __init__(self, card_url: str, kept: dict[str, Value]) -> None:
        self.card_url, self.kept = card_url, kept

    def to(self, show: str = "", *, part: str = "", family: str | None = None) -> str:
        """The items of a kind."""
        asked = AskedItems(part, show, family)
        return address(self.card_url, {**self.kept, **asked.values}, place=PLACE)


def part_of(card: JudgeCard, name: str) -> CardPart:
    """The part of the card of that name."""
    match name:
        case "adjudicated":
            return card.adjudicated
        case "exploratory":
            return card.exploratory
        case _:
            return card.labelled


def item_list(
    card: JudgeCard,
    asked: AskedItems,
    links: ItemLinks,
    *,
    at: Addresses,
    hidden: Collection[int],
) -> ItemList | None:
    """The items that are asked for, a page of them. None where the card has none at all.

    `hidden` holds the trials whose labels are kept from the reader.
    """
    if not any(part_of(card, name).items for name in PARTS):
        return None
    part = part_of(card, asked.part)
    is_shown = SHOWN[asked.show][1]
    fitting = [
        each
        for each in part.items
        if is_shown(each.item) and (asked.family is None or each.item.family == asked.family)
    ]
    listed = [each for each in fitting if each.trial.pk not in hidden]
    start = _start(listed, asked.after)
    shown = listed[start : start + PAGE]
    is_all = asked == AskedItems(after=asked.after)
    return ItemList(
        title=f"Items: {SHOWN[asked.show][0]}" if asked.show else "Items",
        sentence=_sentence(asked, len(fitting)),
        choices=_choices(part, asked, links),
        rows=tuple(_row(each, at) for each in shown),
        pager=_pager(listed, start, asked, links),
        n_hidden=len(fitting) - len(listed),
        csv_url=address(links.card_url, {**links.kept, "format": "csv"}),
        all_url="" if is_all else links.to(),
    )


def _sentence(asked: AskedItems, n: int) -> str:
    of = "" if asked.family is None else f" of family {asked.family or 'none'}"
    return f"{counted(n, 'item')}{of}, {PARTS[asked.part]}"


def _start(listed: Sequence[CardItem], after: str) -> int:
    places = (place for place, each in enumerate(listed) if each.item.key == after)
    return next(places, -1) + 1


def _pager(listed: Sequence[CardItem], start: int, asked: AskedItems, links: ItemLinks) -> Pager:
    if len(listed) <= PAGE:
        return Pager()
    values = {**links.kept, **asked.values}
    end = min(start + PAGE, len(listed))
    before = listed[start - PAGE - 1].item.key if start > PAGE else ""
    return Pager(
        previous_url=address(links.card_url, {**values, "after": before}, place=PLACE)
        if start
        else "",
        next_url=address(links.card_url, {**values, "after": listed[end - 1].item.key}, place=PLACE)
        if end < len(listed)
        else "",
        words=f"{count_text(start + 1)} to {count_text(end)} of {count_text(len(listed))}",
    )


def _choices(part: CardPart, asked: AskedItems, links: ItemLinks) -> tuple[Choice, ...]:
    """The kinds of items that there are, those that are asked for among them."""
    counts = {
        name: sum(1 for each in part.items if test(each.item))
        for name, (_, test) in SHOWN.items()
        if name not in ("people_failed", "people_passed")
    }
    return tuple(
        Choice(
            SHOWN[name][0],
            links.to(name, part=asked.part, family=asked.family),
            is_current=name == asked.show,
            count=n if asked.family is None else None,
        )
        for name, n in counts.items()
        if n or name in ("", asked.show)
    )


def _row(each: CardItem, at: Addresses) -> ItemRow:
    item, trial = each.item, each.trial
    return ItemRow(
        trial=pages.Link(
            f"{trial.task_id} · trial {trial_label(trial.label, trial.attempt)}",
            at.trial(trial.uuid),
        ),
        family=item.family,
        people=_badge(_SAID[item.consensus]),
        labels=", ".join(label.value.value for label in item.labels),
        judge=_badge(_WORDS[item.word]),
        note=_note(item),
    )


def _badge(state_and_word: tuple[str, str]) -> pages.Badge:
    state, word = state_and_word
    return pages.Badge(word, state)


def _note(item: LabelledItem) -> str:
    if is_false_pass(item):
        return "false pass"
    if is_false_fail(item):
        return "false failure"
    return "" if is_decided(item) else "in no rate"


# --- CSV

CSV_COLUMNS = (
    "judge",
    "version",
    "criterion",
    "rubric_version",
    "part",
    "trial",
    "task_id",
    "trial_label",
    "attempt",
    "family",
    "people",
    "label_1",
    "label_2",
    "label_3",
    "random_sample",
    "judge_says",
    "counts_as",
)


def card_csv_lines(card: JudgeCard, *, hidden: Collection[int]) -> Iterator[str]:
    """One line an item. A text that a spreadsheet would take for a formula is made harmless."""
    yield _csv_line(CSV_COLUMNS)
    for name in PARTS:
        for each in part_of(card, name).items:
            if each.trial.pk not in hidden:
                yield _csv_line(_cells(card, name or "labelled", each))


def _cells(card: JudgeCard, part: str, each: CardItem) -> tuple[str | int, ...]:
    item, trial = each.item, each.trial
    by_round = {label.round: label.value.value for label in item.labels}
    return (
        card.judge.judge,
        card.judge.version,
        card.judge.criterion,
        card.text.rubric_version,
        part,
        str(trial.uuid),
        trial.task_id,
        trial.label,
        trial.attempt,
        item.family,
        item.consensus.value,
        *(by_round.get(number, "") for number in (1, 2, 3)),
        "yes" if item.is_random else "no",
        item.word.value,
        _note(item).replace(" ", "_") or "right",
    )


def _csv_line(cells: tuple[str | int, ...]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([csv_safe(cell) for cell in cells])
    return out.getvalue()
