"""Stored trajectories and their calls, as the core compares them.

Both are append-only, so what is built from them by id may be remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection

from evalsite.common import blobs
from evalsite.common.remembering import remembered
from traces.core.canonical import value_of_text
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
)
from traces.core.values import Json
from traces.models import TranscriptChunk

_OUTCOMES = {
    "c": CallOutcome.COMMITTED,
    "r": CallOutcome.REJECTED,
    "u": CallOutcome.UNKNOWN,
}
MESSAGE = 0  # stands for an agent message among the ids of calls


@dataclass(frozen=True, slots=True)
class StoredSteps:
    """A trajectory as ids of its calls; `MESSAGE` for an agent message without a call."""

    pk: int
    calls: tuple[int, ...]
    outcomes: str  # one letter a step: c committed, r rejected, u unknown, m message
    groups: tuple[int, ...]  # the running number, from 0, of the message that made each step
    is_comparable: bool

    def without_messages(self) -> StoredSteps:
        """Tool calls only."""
        kept = [at for at, call in enumerate(self.calls) if call != MESSAGE]
        return StoredSteps(
            self.pk,
            tuple(self.calls[at] for at in kept),
            "".join(self.outcomes[at] for at in kept),
            tuple(self.groups[at] for at in kept),
            self.is_comparable,
        )


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A distinct call."""

    name: str
    form: ArgumentsForm
    text: str  # canonical

    @property
    def arguments(self) -> Json:
        """The arguments as a value: the raw text when they are not JSON, None when absent."""
        return None if self.form is ArgumentsForm.ABSENT else value_of_text(self.text)

    def made(self, letter: str, *, step: int) -> TrajectoryCall:
        """The call as an attempt with its outcome."""
        return TrajectoryCall(self.name, self.arguments, self.form, _OUTCOMES[letter], step)


def stored_steps(trajectory_ids: Iterable[int]) -> dict[int, StoredSteps]:
    """Trajectories by id, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, steps, outcomes, groups, is_comparable FROM traces_trajectory"
            " WHERE id = ANY(%s)",
            [list(set(trajectory_ids))],
        )
        return {
            pk: StoredSteps(pk, tuple(steps), outcomes, tuple(groups), comparable)
            for pk, steps, outcomes, groups, comparable in cursor.fetchall()
        }


def tool_names_of(call_ids: Iterable[int]) -> dict[int, str]:
    """The tool of each call, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.id, t.name FROM traces_distinctcall c JOIN traces_tool t ON t.id = c.tool_id"
            " WHERE c.id = ANY(%s)",
            [list(set(call_ids) - {MESSAGE})],
        )
        return dict(cursor.fetchall())


def stored_calls(call_ids: Iterable[int]) -> dict[int, StoredCall]:
    """Calls with their arguments, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.id, t.name, c.form, c.arguments FROM traces_distinctcall c"
            " JOIN traces_tool t ON t.id = c.tool_id WHERE c.id = ANY(%s)",
            [list(set(call_ids) - {MESSAGE})],
        )
        return {
            pk: StoredCall(name, ArgumentsForm(form), text)
            for pk, name, form, text in cursor.fetchall()
        }


def trajectory_with_steps(
    steps: StoredSteps, calls: dict[int, StoredCall], numbers: Sequence[int]
) -> Trajectory:
    """A trajectory with the transcript's own step numbers, those of its agent messages."""
    return tuple(
        TrajectoryMessage(numbers[group])
        if call == MESSAGE
        else calls[call].made(letter, step=numbers[group])
        for call, letter, group in zip(steps.calls, steps.outcomes, steps.groups, strict=True)
    )


@remembered(256)
def agent_step_numbers(trial_pk: int) -> tuple[int, ...]:
    """The step numbers of a trial's agent messages, in order."""
    chunks = (
        TranscriptChunk.objects.filter(trial_id=trial_pk)
        .order_by("first_step")
        .values_list("first_step", "content")
    )
    return tuple(
        number
        for first, content in chunks
        for number, message in enumerate(blobs.unpack(content), first)
        if message.get("role") == "assistant"
    )
