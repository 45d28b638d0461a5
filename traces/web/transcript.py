"""A transcript as a person reads it: calls with their results, rejected attempts marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from django.conf import settings

from evalsite.common.remembering import remembered
from traces.core.rules import RuleSet
from traces.core.shown_json import shown_json
from traces.core.text_marks import clean_text, count_marks
from traces.core.trajectory import Actor, ArgumentsForm, CallOutcome, Step, ToolCall
from traces.selectors.trial_detail import TranscriptPage, transcript_page
from traces.web import pages
from traces.web.addressed_notes import addressed_note
from traces.web.tool_names import MESSAGE_LABEL, ToolLook, tool_looks

LONG_TEXT = 4_000  # characters from which a text is folded at first
LONG_RESULT = 600
LONG_ARGUMENTS = 4_000
PAGE_BYTES = 300_000  # of text on one page as HTML; what comes after is shortened
_LEAST_PREVIEW = 300
_LEAST_CHARACTERS = 20
_MARK_BYTES = 70
MOST_CELLS = 300
_ACTORS = {
    Actor.AGENT: "agent",
    Actor.USER: "user",
    Actor.SYSTEM: "system",
    Actor.ENVIRONMENT: "tool",
    Actor.OTHER: "other",
}


@dataclass(slots=True)
class _Budget:
    """How much more text the page takes."""

    left: int = PAGE_BYTES

    def block(self, text: str, *, kind: str, full_url: str, long_from: int) -> pages.TextBlock:
        size = len(text.encode("utf-8", "surrogatepass"))
        most = settings.EVALSITE_PREVIEW_MAX_BYTES
        shown = text if size <= most else _first_bytes(text, most)
        takes, allowed = self._takes(shown), max(_LEAST_PREVIEW, self.left)
        if takes > allowed:
            shown = shown[: max(_LEAST_CHARACTERS, len(shown) * allowed // takes)]
        self.left -= min(takes, allowed)
        is_cut = len(shown) < len(text)
        return pages.TextBlock(
            text=shown,
            kind=kind,
            size=size,
            n_marks=count_marks(shown),
            is_cut=is_cut,
            full_url=full_url if is_cut else "",
            is_long=len(shown) > long_from,
            addressed=addressed_note(text),
        )

    @staticmethod
    def _takes(text: str) -> int:
        """Bytes of the text once it is escaped and marked, nearly."""
        escaped = sum(map(text.count, "<>&")) * 4 + sum(map(text.count, "\"'")) * 5
        marked = count_marks(text) * _MARK_BYTES
        return len(text.encode("utf-8", "surrogatepass")) + escaped + marked


def _first_bytes(text: str, n: int) -> str:
    return text[:n].encode("utf-8", "surrogatepass")[:n].decode("utf-8", "ignore")


@dataclass(slots=True)
class TranscriptView:
    """Builds the steps of one page of a trial's transcript."""

    trial_url: str  # ends with a slash
    page: TranscriptPage
    looks: Mapping[str, ToolLook]
    cited: Mapping[int, tuple[str, ...]]
    budget: _Budget = field(default_factory=_Budget)

    def steps(self) -> tuple[pages.TranscriptStep, ...]:
        """The steps of the page; a result that stands with its call has no entry of its own."""
        calls = {call.result_step for step in self.page.steps for call in step.calls}
        callers = {
            call.result_step: call
            for step in self.page.nearby.values()
            for call in step.calls
            if call.result_step is not None
        }
        return tuple(
            self._step(step, callers.get(step.number))
            for step in self.page.steps
            if step.number not in calls
        )

    def _step(self, step: Step, answers: ToolCall | None) -> pages.TranscriptStep:
        is_result = step.actor is Actor.ENVIRONMENT
        cited = dict.fromkeys(self.cited.get(step.number, ()))
        for call in step.calls:
            cited.update(dict.fromkeys(self.cited.get(call.result_step or 0, ())))
        return pages.TranscriptStep(
            number=step.number,
            actor=_ACTORS[step.actor],
            href=self._link(step.number),
            blocks=self._blocks(step, LONG_RESULT if is_result else LONG_TEXT),
            calls=tuple(self._call(step, call) for call in step.calls),
            at=_shown_time(step.at),
            role=clean_text(step.role)[:80] if step.actor is Actor.OTHER else "",
            is_error=step.is_error is True
            or any(call.outcome is CallOutcome.REJECTED for call in step.calls),
            cited_by=tuple(cited),
            note=_result_note(answers) if is_result else "",
        )

    def _link(self, number: int) -> str:
        """A stable link to a step."""
        return f"{self.trial_url}?step={number}#step-{number}"

    def _content(self, number: int) -> str:
        """The whole content of a step."""
        return f"{self.trial_url}steps/{number}/content"

    def _blocks(self, step: Step, long_from: int) -> tuple[pages.TextBlock, ...]:
        return tuple(
            self.budget.block(
                part.text,
                kind=part.kind,
                full_url=self._content(step.number),
                long_from=long_from,
            )
            for part in step.parts
        )

    def _call(self, step: Step, call: ToolCall) -> pages.TranscriptCall:
        look = self.looks[call.name]
        arguments, raw, note = self._arguments(step, call)
        answer = self._answer(call)
        return pages.TranscriptCall(
            name=call.name,
            colour=look.colour,
            kind=look.kind,
            outcome=call.outcome.value,
            arguments=arguments,
            raw=raw,
            raw_note=note,
            result=self._result(answer) if answer else None,
            result_step=call.result_step,
            result_href=self._link(call.result_step) if call.result_step else "",
            seconds=_seconds_between(step.at, answer.at if answer else None),
            by_user=call.by_user,
            addressed=addressed_note("\n".join((call.name, *_words_of(arguments)))),
        )

    def _answer(self, call: ToolCall) -> Step | None:
        if call.result_step is None:
            return None
        place = call.result_step - self.page.first
        if 0 <= place < len(self.page.steps):
            return self.page.steps[place]
        return self.page.nearby.get(call.result_step)

    def _result(self, answer: Step) -> pages.TextBlock:
        text = "\n".join(part.text for part in answer.parts)
        return self.budget.block(
            text,
            kind="text",
            full_url=self._content(answer.number),
            long_from=LONG_RESULT,
        )

    def _arguments(
        self, step: Step, call: ToolCall
    ) -> tuple[tuple[pages.Argument, ...], pages.TextBlock | None, str]:
        """Arguments by name; or as one text, with a note, where they have no names."""
        if call.form is ArgumentsForm.ABSENT:
            return (), None, "The arguments were not recorded."
        url = f"{self._content(step.number)}?call={call.index}"
        if call.form is ArgumentsForm.INVALID:
            text = call.arguments if isinstance(call.arguments, str) else ""
            raw = self.budget.block(text, kind="text", full_url=url, long_from=LONG_ARGUMENTS)
            return (), raw, "Not JSON: kept as it came."
        text = shown_json(call.arguments)
        if isinstance(call.arguments, dict) and len(text) <= LONG_ARGUMENTS:
            self.budget.left -= len(text)
            named = tuple(
                pages.Argument(name, shown_json(value)) for name, value in call.arguments.items()
            )
            return named, None, ""
        raw = self.budget.block(text, kind="text", full_url=url, long_from=LONG_ARGUMENTS)
        return (), raw, "" if isinstance(call.arguments, dict) else "Not a JSON object."


def _words_of(arguments: tuple[pages.Argument, ...]) -> Iterator[str]:
    for one in arguments:
        yield from (one.name, one.value)


_ISO_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,]\d+)?(.*)", re.DOTALL)


def _shown_time(text: str | None) -> str:
    """A time as given, to the second: the raw record has the rest."""
    given = clean_text(text or "")
    match = _ISO_TIME.fullmatch(given)
    return f"{match[1]} {match[2]}{match[3]}" if match else given


def _result_note(answers: ToolCall | None) -> str:
    if answers is None:
        return "a result without its call"
    return f"the result of {clean_text(answers.name)} in step {answers.step}"


def _seconds_between(start: str | None, end: str | None) -> Decimal | None:
    if not start or not end:
        return None
    try:
        first, second = datetime.fromisoformat(start), datetime.fromisoformat(end)
        seconds = (second - first).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return Decimal(f"{seconds:.3f}") if 0 <= seconds < 10**7 else None


def path_strip(steps: Sequence[Step], looks: Mapping[str, ToolLook]) -> tuple[pages.PathCell, ...]:
    """The agent's own steps as cells that lead to their places on the page."""
    cells: list[pages.PathCell] = []
    for step in steps:
        if step.actor is not Actor.AGENT:
            continue
        href = f"#step-{step.number}"
        own = [call for call in step.calls if not call.by_user]
        if not own:
            cells.append(
                pages.PathCell(MESSAGE_LABEL, "", href=href, kind="message", step=step.number)
            )
        for call in own:
            look = looks[call.name]
            cells.append(
                pages.PathCell(
                    look.label,
                    look.name,
                    href=href,
                    colour=look.colour,
                    kind=look.kind,
                    n_rejected=int(call.outcome is CallOutcome.REJECTED),
                    step=step.number,
                )
            )
    return tuple(cells[:MOST_CELLS])


@dataclass(frozen=True, slots=True)
class ShownTranscript:
    """One page of a transcript, ready to be shown."""

    steps: tuple[pages.TranscriptStep, ...]
    cells: tuple[pages.PathCell, ...]
    tools: tuple[pages.ToolKey, ...]
    first: int  # 0 when the transcript is empty
    last: int
    previous: int | None  # the first step of the page before
    next: int | None
    addressed: tuple[int, ...] = ()  # steps of it with text addressed to graders or reviewers


@remembered(64)
def shown_transcript(
    trial_pk: int,
    at: int,
    *,
    trial_url: str,
    rules: RuleSet,
    cited: tuple[tuple[int, str], ...],
) -> ShownTranscript:
    """A page of a transcript, remembered: evidence never changes, and all else is in the key.

    `cited` pairs a step with who cites it.
    """
    rejection = rules.rejection
    page = transcript_page(trial_pk, at, rejection=rejection)
    looks = tool_looks(dict.fromkeys(c.name for step in page.steps for c in step.calls), rules)
    by_step: dict[int, tuple[str, ...]] = {}
    for step, who in cited:
        by_step[step] = (*by_step.get(step, ()), who)
    steps = TranscriptView(trial_url, page, looks, by_step).steps()
    return ShownTranscript(
        steps=steps,
        cells=path_strip(page.steps, looks),
        tools=tuple(look.key for look in looks.values()),
        first=page.first,
        last=page.last,
        previous=page.previous,
        next=page.next,
        addressed=tuple(dict.fromkeys(_addressed(steps))),
    )


def _addressed(steps: Sequence[pages.TranscriptStep]) -> Iterator[int]:
    for step in steps:
        if any(block.addressed for block in step.blocks):
            yield step.number
        for call in step.calls:
            if call.addressed or (call.raw and call.raw.addressed):
                yield step.number
            if call.result and call.result.addressed:
                yield call.result_step or step.number
