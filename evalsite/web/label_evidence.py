"""The evidence of an item as somebody sees it who is to label it blind.

Nothing here comes from a verdict, a flag, a disposition or another trial.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evalsite.common.formatting import count_text, counted
from evalsite.common.shell import Pager
from traces.core.contracts.model import Contract
from traces.core.contracts.words import (
    EntryWords,
    Words,
    outcome_words,
    prohibited_words,
    required_words,
)
from traces.core.text_marks import count_marks
from traces.models import EvidenceAddition, Trial
from traces.selectors.rules import rules_of
from traces.selectors.trial_detail import (
    RecordFacts,
    page_of_step,
    record_facts,
    record_with_additions,
)
from traces.web import pages
from traces.web.pages.labelling import AskedLines
from traces.web.pages.trials import TextBlock, TranscriptCall, TranscriptStep
from traces.web.transcript import ShownTranscript, shown_transcript

MOST_LINES = 12  # of one part of a contract
LONGEST_LINE = 400  # characters
LONGEST_QUESTION = 20_000
LONG_QUESTION = 1_200  # characters from which it is folded


def blind_transcript(
    trial: Trial, *, step: int | None, label_url: str, trial_url: str
) -> ShownTranscript:
    """A page of a trial's transcript without what anybody cites, its links on the label's page."""
    shown = shown_transcript(
        trial.pk,
        page_of_step(trial.pk, step or 1),
        trial_url=label_url,
        rules=rules_of(trial.system),
        cited=(),
    )
    steps = tuple(_with_texts(each, label_url, trial_url) for each in shown.steps)
    return replace(shown, steps=steps)


def _with_texts(step: TranscriptStep, label_url: str, trial_url: str) -> TranscriptStep:
    """The step with long texts downloaded from where they are: the trial."""

    def moved(block: TextBlock) -> TextBlock:
        rest = block.full_url.removeprefix(label_url)
        return replace(block, full_url=f"{trial_url}{rest}") if block.full_url else block

    def call(each: TranscriptCall) -> TranscriptCall:
        return replace(
            each,
            raw=moved(each.raw) if each.raw else None,
            result=moved(each.result) if each.result else None,
        )

    return replace(
        step,
        blocks=tuple(moved(block) for block in step.blocks),
        calls=tuple(call(each) for each in step.calls),
    )


def steps_pager(shown: ShownTranscript, n_steps: int, here: str, item: str) -> Pager:
    """The ways to the other pages of the transcript."""
    if shown.previous is None and shown.next is None:
        return Pager()
    words = f"steps {count_text(shown.first)} to {count_text(shown.last)} of {count_text(n_steps)}"
    return Pager(
        previous_url="" if shown.previous is None else f"{here}?item={item}&from={shown.previous}",
        next_url="" if shown.next is None else f"{here}?item={item}&from={shown.next}",
        words=words,
    )


def n_additions(trial: Trial) -> int:
    """How much evidence was added to the trial. One query."""
    return EvidenceAddition.objects.filter(trial=trial).count()


def blind_state(trial: Trial, order: int) -> pages.StateDifference | None:
    """The initial against the final state; not against what the record expects."""
    record = record_with_additions(trial.pk, order) if order else record_facts(trial.pk)
    if not record.recorded_states:
        return None
    return _difference(record)


def _difference(record: RecordFacts) -> pages.StateDifference:
    found = record.changed
    if found is None:
        missing = "initial" if "initial_state" not in record.recorded_states else "final"
        return pages.StateDifference(
            f"The {missing} state was not recorded, so nobody can say what changed.",
            source=record.state_source,
        )
    n = found.n_differences
    return pages.StateDifference(
        f"{counted(n, 'difference')}." if n else "No difference.",
        changes=tuple(
            pages.StateChange(change.kind, change.path, change.before, change.after)
            for change in found.changes
        ),
        n_more=n - len(found.changes),
        source=record.state_source,
    )


def question_block(text: str) -> TextBlock | None:
    """The text of a rubric, folded when it is long."""
    if not text:
        return None
    shown = text[:LONGEST_QUESTION]
    return TextBlock(
        text=shown,
        size=len(text.encode("utf-8", "surrogatepass")),
        n_marks=count_marks(shown),
        is_cut=len(shown) < len(text),
        is_long=len(shown) > LONG_QUESTION,
    )


def asked_lines(contract: Contract) -> Iterator[AskedLines]:
    """What the contract asks around the criterion, in words."""
    outcome = [
        " ".join(part for part in (case.lead, case.when) if part)
        + ": "
        + "; ".join(_words(line, is_state=True) for line in case.lines)
        for case in outcome_words(contract)
    ]
    prohibited = [each for group in prohibited_words(contract) for each in group.entries]
    for heading, lines in (
        ("Required outcome", outcome),
        ("Required", [_entry(each) for each in required_words(contract)]),
        ("Forbidden", [_entry(each) for each in prohibited]),
    ):
        if lines:
            shown = tuple(_cut(line) for line in lines[:MOST_LINES])
            yield AskedLines(heading, shown, len(lines) - len(shown))


def _entry(entry: EntryWords) -> str:
    return f"{entry.id}: {' '.join(_words(part) for part in entry.parts)}"


def _words(words: Words, *, is_state: bool = False) -> str:
    parts = (
        (words.name, words.lead, words.where)
        if is_state
        else (words.lead, words.name, f"where {words.where}" if words.where else "")
    )
    return " ".join(part for part in parts if part)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"
