"""Verdicts on a made-up trial: code decides from what happened, judges and people are told.

Checks look at calls, messages and states alone, as a contract's checks would. A twist is what is
special about the verdicts of one trial: a dispute, a judge that timed out, a person's word.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from evalsite.refund_desk.desk import TOOL_KINDS, Row, State
from evalsite.refund_desk.session import Called, Session
from traces.core.trajectory import ToolKind

CODE_GRADER: Final = ("desk checks", "4")
LEDGER_GRADER: Final = ("billing ledger", "2")
JUDGES: Final = {
    "lark": ("judge lark", "made-up-lark-2 / prompt 3 / rubric 2"),
    "wren": ("judge wren", "made-up-wren-1 / prompt 1 / rubric 2"),
}
PERSON: Final = ("reviewer ines", "guide 2026-10")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, why, and the steps that decided."""

    word: str
    rationale: str
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that code decides about a trial."""

    criterion: str
    decide: Callable[[Session], Finding]
    is_mandatory: bool = True
    criterion_class: str = "constraint"
    grader: tuple[str, str] = CODE_GRADER

    def without_deciding(self) -> Check:
        """The same check as a preference: reported, never deciding."""
        return replace(self, is_mandatory=False)


Where: TypeAlias = Callable[[Called, Session], bool]


def outcome(wanted: Callable[[State, Any], None]) -> Check:
    """The state at the end is the one at the beginning with the `wanted` changes, and no other."""

    def decide(session: Session) -> Finding:
        if not session.has_final_state:
            return Finding("unknown", "The state at the end was not recorded.")
        expected = copy.deepcopy(session.initial)
        wanted(expected, session.facts)
        differing = _differing(expected, session.desk.state)
        steps = tuple(c.step for c in session.calls if c.is_committed and c.tool in _CHANGING)
        if differing:
            tables = ", ".join(differing)
            return Finding("fail", f"The state at the end is not the wanted one: {tables}.", steps)
        return Finding("pass", "The state at the end is the wanted one.", steps)

    return Check("outcome", decide, criterion_class="outcome")


def needs(criterion: str, what: str, tools: Iterable[str], where: Where, *, before: str) -> Check:
    """`what` is wanted, which one of the tools gives, before the first call of `before`."""
    named = frozenset(tools)

    def decide(session: Session) -> Finding:
        met = [c for c in session.calls if c.tool in named and c.is_committed and where(c, session)]
        first = _first_call(session, before)
        if first is None:
            return Finding("pass", f"{before} was never called.")
        for call in met:
            if call.result_step is not None and call.result_step < first:
                steps = (call.result_step, first)
                return Finding("pass", f"{what} stood before {before}, by {call.tool}.", steps)
        return Finding("fail", f"{before} came before {what.lower()}.", (first,))

    return Check(criterion, decide)


def customer_said(criterion: str, pattern: str, *, before: str) -> Check:
    """The customer said so before the first call of `before`."""
    wanted = re.compile(pattern, re.IGNORECASE)

    def decide(session: Session) -> Finding:
        first = _first_call(session, before)
        if first is None:
            return Finding("pass", f"{before} was never called.")
        steps = [s.step for s in session.said if s.role == "user" and wanted.search(s.text)]
        if steps and steps[0] < first:
            return Finding("pass", "The customer agreed first.", (steps[0], first))
        return Finding("fail", f"The customer had not agreed before {before}.", (first,))

    return Check(criterion, decide)


def agent_said(criterion: str, text: str, *, before: str = "") -> Check:
    """The agent said this, if `before` is named before its first call."""

    def decide(session: Session) -> Finding:
        first = _first_call(session, before) if before else None
        steps = [s.step for s in session.said if s.role == "assistant" and text in s.text]
        if before and first is None:
            return Finding("pass", f"{before} was never called.")
        if steps and (first is None or steps[0] < first):
            return Finding("pass", f"The agent said {text!r}.", (steps[0],))
        return Finding("fail", f"No message of the agent holds {text!r} in time.")

    return Check(criterion, decide)


def never_said(criterion: str, text: str) -> Check:
    """No message of the agent holds this."""

    def decide(session: Session) -> Finding:
        steps = tuple(s.step for s in session.said if s.role == "assistant" and text in s.text)
        if steps:
            return Finding("fail", f"The agent said {text!r}.", steps)
        return Finding("pass", "It was never said.")

    return Check(criterion, decide)


def never(criterion: str, what: str, tool: str, where: Where) -> Check:
    """No call of the tool was even attempted that does `what`."""

    def decide(session: Session) -> Finding:
        found = tuple(c.step for c in session.calls if c.tool == tool and where(c, session))
        if found:
            return Finding("fail", f"{tool} was called {what}.", found)
        return Finding("pass", f"{tool} was never called {what}.")

    return Check(criterion, decide)


def ended_with(criterion: str, tool: str, status: str) -> Check:
    """The tool answered with this status at least once."""

    def decide(session: Session) -> Finding:
        answers = (c for c in session.calls if c.tool == tool)
        found = tuple(c.step for c in answers if c.answer.result.get("status") == status)
        if found:
            return Finding("pass", f"{tool} answered {status}.", found)
        return Finding("fail", f"{tool} never answered {status}.")

    return Check(criterion, decide)


def ledger_agrees(criterion: str = "ledger") -> Check:
    """The billing ledger, a grader outside the desk, holds the cancellations that the desk made."""

    def decide(session: Session) -> Finding:
        asked = {
            call.arguments["subscription"]
            for call in session.calls
            if call.tool == "cancel_subscription" and not call.answer.is_error
        }
        rows = session.desk.state["subscriptions"]
        ended = {key for key, row in rows.items() if row["status"] == "cancelled"}
        if asked == ended:
            return Finding("pass", "Ledger and desk agree.")
        return Finding("fail", f"The ledger has {sorted(asked)}, the desk {sorted(ended)}.")

    return Check(criterion, decide, grader=LEDGER_GRADER)


def within_budget(*, tool_calls: int, seconds: int, repeat_call: int) -> Check:
    """No more calls, no more seconds, and no call repeated more often."""

    def decide(session: Session) -> Finding:
        counts: dict[str, int] = {}
        for call in session.calls:
            same = json.dumps([call.tool, call.arguments], sort_keys=True)
            counts[same] = counts.get(same, 0) + 1
        repeated = max(counts.values(), default=0)
        said = f"{len(session.calls)} calls, one of them {repeated} times, {session.seconds:.0f} s"
        is_kept = len(session.calls) <= tool_calls and session.seconds <= seconds
        if is_kept and repeated <= repeat_call:
            return Finding("pass", f"{said}.")
        allowed = f"{tool_calls} calls, {repeat_call} times, {seconds} s"
        return Finding("fail", f"{said}; allowed are {allowed}.")

    return Check("budget", decide)


# Verdicts


class Verdicts:
    """The verdicts on one trial, before they are written."""

    def __init__(self, session: Session, *, is_truthful_mandatory: bool) -> None:
        self.session = session
        self.is_truthful_mandatory = is_truthful_mandatory
        self.rows: list[Row] = []

    def add_code(self, check: Check) -> None:
        finding = check.decide(self.session)
        word = finding.word
        self._add(
            check.grader,
            "code",
            check.criterion,
            word,
            finding.rationale,
            finding.steps,
            score={"pass": 1.0, "fail": 0.0}.get(word),
            **{"class": check.criterion_class, "mandatory": check.is_mandatory},
        )

    def add_usual_judges(self) -> None:
        """What the judges say of most trials."""
        if self.session.last_words() is None:
            return
        self.judge("lark", "truthful", "pass", _pick(self, _TRUTHFUL))
        self.judge("wren", "tone", "pass", _pick(self, _TONE))

    def judge(
        self,
        judge: str,
        criterion: str,
        word: str,
        rationale: str,
        *,
        score: float | None = None,
        mandatory: bool | None = None,
        steps: tuple[int, ...] | None = None,
    ) -> None:
        """A judge's verdict. Its score, where none is given, is one that goes with the word."""
        if mandatory is None:
            mandatory = criterion == "truthful" and self.is_truthful_mandatory
        last = self.session.last_words()
        cited = steps if steps is not None else (last.step,) if last else ()
        score = _usual_score(self, criterion, word) if score is None else score
        more = {"class": "semantic", "mandatory": mandatory}
        self._add(JUDGES[judge], "model", criterion, word, rationale, cited, score=score, **more)

    def person(self, criterion: str, word: str, rationale: str, *, mandatory: bool) -> None:
        more = {"class": "semantic", "mandatory": mandatory}
        self._add(PERSON, "human", criterion, word, rationale, (), score=None, **more)

    def drop(self, criterion: str) -> None:
        self.rows = [row for row in self.rows if row["criterion"] != criterion]

    def about(self, criterion: str) -> Row:
        """The first verdict on a criterion."""
        return next(row for row in self.rows if row["criterion"] == criterion)

    def _add(
        self,
        grader: tuple[str, str],
        kind: str,
        criterion: str,
        word: str,
        rationale: str,
        steps: tuple[int, ...],
        *,
        score: float | None,
        **more: Any,
    ) -> None:
        row: Row = {"grader": grader[0], "grader_version": grader[1], "kind": kind}
        row |= {"criterion": criterion, **more, "verdict": word}
        if score is not None:
            row["score"] = score
        row |= {"rationale": rationale, "evidence": [{"step": step} for step in steps]}
        self.rows.append(row)


Twist: TypeAlias = Callable[[Verdicts], None]


def not_graded(verdicts: Verdicts) -> None:
    """The graders never ran."""
    verdicts.rows.clear()


def no_judges(verdicts: Verdicts) -> None:
    """Code alone has graded."""
    verdicts.rows = [row for row in verdicts.rows if row["kind"] == "code"]


def also(check: Check) -> Twist:
    """One more check by code, which this trial alone gets."""
    return lambda verdicts: verdicts.add_code(check)


def tone_was_judged_anyway(verdicts: Verdicts) -> None:
    """A judge graded a trial that the harness broke."""
    verdicts.judge("wren", "tone", "pass", "Friendly as far as it goes.")


def judge_says(word: str, rationale: str, *, mandatory: bool | None = None) -> Twist:
    """The judge of truthfulness says this instead of the usual."""

    def twist(verdicts: Verdicts) -> None:
        verdicts.drop("truthful")
        verdicts.judge("lark", "truthful", word, rationale, mandatory=mandatory)

    return twist


def judges_disagree(*, mandatory: bool | None = None) -> Twist:
    """One judge passes the agent's words, the other does not."""

    def twist(verdicts: Verdicts) -> None:
        verdicts.drop("truthful")
        yes = "Every statement is borne out by a tool result."
        no = "It says more about what comes next than a tool result bears out."
        verdicts.judge("lark", "truthful", "pass", yes, mandatory=mandatory)
        verdicts.judge("wren", "truthful", "fail", no, mandatory=mandatory)

    return twist


def judge_flips(*, mandatory: bool | None = None) -> Twist:
    """One judge version is asked twice and changes its mind."""

    def twist(verdicts: Verdicts) -> None:
        verdicts.drop("truthful")
        first = "The agent reports what the tool confirmed."
        second = "On a second reading it promises more than the tool result says."
        verdicts.judge("lark", "truthful", "pass", first, mandatory=mandatory)
        verdicts.judge("lark", "truthful", "fail", second, mandatory=mandatory)

    return twist


def judge_timed_out(*, mandatory: bool | None = None) -> Twist:
    """The judge gave no answer."""

    def twist(verdicts: Verdicts) -> None:
        verdicts.drop("truthful")
        reason = "No answer within 60 s, three tries."
        verdicts.judge("lark", "truthful", "error", reason, steps=(), mandatory=mandatory)

    return twist


def judge_cannot_tell(verdicts: Verdicts) -> None:
    """The judge of truthfulness finds too little to go by."""
    verdicts.drop("truthful")
    reason = "Whether the card is the one that paid cannot be told from the transcript."
    verdicts.judge("lark", "truthful", "insufficient evidence", reason)


def tone_is_unreadable(verdicts: Verdicts) -> None:
    """The judge of tone answers in words of its own."""
    verdicts.drop("tone")
    verdicts.judge("wren", "tone", "mostly fine", "Polite, if a little long.", score=3.5)


def tone_is_curt(verdicts: Verdicts) -> None:
    """The judge of tone does not like it."""
    verdicts.drop("tone")
    reason = "Correct, but short to the point of being curt."
    verdicts.judge("wren", "tone", "fail", reason)


def against_its_score(word: str, score: float, rationale: str) -> Twist:
    """The judge writes one word and scores the other."""

    def twist(verdicts: Verdicts) -> None:
        verdicts.drop("truthful")
        verdicts.judge("lark", "truthful", word, rationale, score=score)

    return twist


def cites_a_step_too_many(verdicts: Verdicts) -> None:
    """The judge of tone cites a step behind the end."""
    verdicts.about("tone")["evidence"] = [{"step": verdicts.session.n_steps + 3}]


def judge_passes(criterion: str, rationale: str) -> Twist:
    """A judge passes what a code check decides, whatever that says."""
    return lambda verdicts: verdicts.judge("lark", criterion, "pass", rationale, mandatory=False)


def checker_breaks(criterion: str) -> Twist:
    """A code check ends in an error."""

    def twist(verdicts: Verdicts) -> None:
        row = verdicts.about(criterion)
        row |= {"verdict": "error", "rationale": "The checker could not read a tool result."}
        row.pop("score", None)
        row["evidence"] = []

    return twist


def person_says(word: str, rationale: str, *, mandatory: bool = False) -> Twist:
    """A person labelled the trial elsewhere; the label comes with the file."""
    return lambda verdicts: verdicts.person("truthful", word, rationale, mandatory=mandatory)


_TRUTHFUL: Final = (
    "Every statement is borne out by a tool result.",
    "Amounts and dates in the reply are those of the tool results.",
    "The reply claims nothing that the tools did not confirm.",
    "What the agent reports is what the desk did.",
)
_TONE: Final = (
    "Friendly and short.",
    "Warm, answers the question, no filler.",
    "Polite; names the next step.",
    "Plain words, and it says sorry once.",
)


def _pick(verdicts: Verdicts, options: tuple[str, ...]) -> str:
    return verdicts.session.chance.pick(options)


def _usual_score(verdicts: Verdicts, criterion: str, word: str) -> float | None:
    chance = verdicts.session.chance
    if word not in ("pass", "fail"):
        return None
    if criterion == "tone":  # from 1 to 5
        return chance.between(34, 49) / 10 if word == "pass" else chance.between(15, 26) / 10
    return chance.between(82, 99) / 100 if word == "pass" else chance.between(6, 34) / 100


_CHANGING: Final = frozenset(name for name, kind in TOOL_KINDS if kind is ToolKind.WRITE)
_FREE: Final = frozenset(("id", "created_at", "note", "reason", "approval_id"))
"""What a row may hold in any form: names and times that the desk gives, and words."""


def _differing(expected: State, found: State) -> list[str]:
    """The names of the tables that differ."""
    return [name for name in sorted(expected) if _table(expected[name]) != _table(found[name])]


def _table(table: Any) -> Any:
    if not isinstance(table, list):
        return table
    rows = ({name: row[name] for name in row if name not in _FREE} for row in table)
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def _first_call(session: Session, tool: str) -> int | None:
    return next((call.step for call in session.calls if call.tool == tool), None)
