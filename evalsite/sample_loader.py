"""The sample evidence that ships with the project: three systems and the people of the demo.

Two are real and lie in files below `sample/`; the third is made up and generated (`refund_desk`).

Loading goes the ordinary way in. It may be killed at any moment: the next load finishes it, and a
finished one is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from evalsite.common.acting import Acting, Source, acting_as
from evalsite.demo_password import give_owner_password
from evalsite.pipeline import process_upload
from evalsite.refund_desk import (
    TASKS,
    TOOL_KINDS,
    DeclaredRun,
    MadeUpRelease,
    MadeUpTask,
    production_lines,
    releases,
)
from evalsite.sample_contracts import load_contracts
from evalsite.sample_gates import load_gates
from evalsite.sample_reviews import Reviewers, load_reviews
from traces.core.rule_documents import rule_set_document
from traces.core.rules import ArgumentRule, Arithmetic, Ignore, RuleSet
from traces.core.trajectory import ToolKind
from traces.models import Door, Role, RulesVersion, System, Task, Upload, UploadState, User
from traces.services.acceptance import Offer, Refusal, accept_upload, file_chunks
from traces.services.people import create_system, set_member
from traces.services.work import declare_run, release_named, tasks_named

FOLDER: Final = Path(__file__).resolve().parent / "sample"
DEMO_ROLES: Final = (Role.ENGINEER, Role.REVIEWER, Role.OWNER, Role.VIEWER)
FURTHER_REVIEWERS: Final = ("reviewer-2", "reviewer-3")

AIRLINE_RULES: Final = RuleSet(
    rules=(
        ArgumentRule(
            tool="calculate",
            argument="expression",
            terms=Arithmetic(),
            reason="Two spellings of one sum ask the calculator for the same number.",
            author="evalsite",
        ),
        ArgumentRule(
            tool="transfer_to_human_agents",
            argument="summary",
            terms=Ignore(),
            reason="The wording of a hand-over is free; that it happened is what counts.",
            author="evalsite",
        ),
        ArgumentRule(
            tool="think",
            argument="thought",
            terms=Ignore(),
            reason="A note of the agent to itself changes nothing outside.",
            author="evalsite",
        ),
    ),
    tool_kinds=(
        ("book_reservation", ToolKind.WRITE),
        ("calculate", ToolKind.READ),
        ("cancel_reservation", ToolKind.WRITE),
        ("get_flight_status", ToolKind.READ),
        ("get_reservation_details", ToolKind.READ),
        ("get_user_details", ToolKind.READ),
        ("list_all_airports", ToolKind.READ),
        ("search_direct_flight", ToolKind.READ),
        ("search_onestop_flight", ToolKind.READ),
        ("send_certificate", ToolKind.WRITE),
        ("think", ToolKind.READ),
        ("transfer_to_human_agents", ToolKind.HANDOFF),
        ("update_reservation_baggages", ToolKind.WRITE),
        ("update_reservation_flights", ToolKind.WRITE),
        ("update_reservation_passengers", ToolKind.WRITE),
    ),
)


MADE_UP_RULES: Final = RuleSet(tool_kinds=TOOL_KINDS)
"""Kinds of tools only: which arguments are the same is left to be found out."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One upload of a sample: what it is of, and where its bytes come from."""

    release: str
    name: str  # below the sample folder, or as if it lay there
    chunks: Callable[[], Iterable[bytes]]

    @property
    def key(self) -> str:
        return f"sample:{self.name}"


def _stored(release: str, path: str) -> _Part:
    """A file below the sample folder."""
    return _Part(release, path, lambda: file_chunks(FOLDER / path))


def _generated(release: MadeUpRelease) -> _Part:
    """The lines of a made-up release."""
    return _Part(release.name, f"refund_desk/{release.name}.jsonl", lambda: release.lines)


@dataclass(frozen=True, slots=True)
class _Sample:
    """One system of the sample, with what is uploaded to it."""

    slug: str
    name: str
    description: str
    source_note: str
    rules: RuleSet
    reason: str  # for the rules
    parts: tuple[_Part, ...]
    tasks: tuple[MadeUpTask, ...] = ()  # named as no file of the sample does it
    runs: tuple[tuple[str, DeclaredRun], ...] = ()  # release; declared before the trials come
    has_contracts: bool = False


_PRODUCTION: Final = _Part("desk-1.0", "refund_desk/production-november.jsonl", production_lines)
_KINDS_AND_WORDING: Final = (
    "Kinds of the airline's tools, and where the wording of an argument is free."
)
_JUDGES: Final = tuple(
    _stored("azure-gpt-4o", f"tau2_airline/judges/airline.summary.{name}_v1.json.gz")
    for name in (
        "customer_outcome",
        "policy_chain_of_thought",
        "policy_conversation",
        "quick_triage",
    )
)
_MADE_UP: Final = releases()
SAMPLES: Final = (
    _Sample(
        slug="tau2-airline",
        name="tau2 airline",
        description="An airline's service agent: five agents on the same 50 tasks, one trial each.",
        source_note=(
            "Trajectories and judge verdicts of tau2-bench (sierra-research/tau2-bench, "
            "submissions and pull requests), MIT licence, copyright Sierra; "
            "commits and checksums in evalsite/sample/tau2_airline/SOURCE.txt."
        ),
        rules=AIRLINE_RULES,
        reason=_KINDS_AND_WORDING,
        parts=(
            *(
                _stored(release, f"tau2_airline/{release}.json.gz")
                for release in (
                    "azure-gpt-4o",
                    "button_claude-opus-4-6",
                    "ironshell_gpt-5.4",
                    "qwen2.5-7b",
                    "toolorchestra_gpt-5",
                )
            ),
            *_JUDGES,
        ),
    ),
    _Sample(
        slug="refund-desk",
        name="Refund desk (made up)",
        description=(
            "Made up: a service desk for refunds, subscriptions, bookings and account data. Two "
            "releases, 13 tasks in four families, five trials each, three more releases at the gate, "
            "and 60 transcripts from production; no agent ran."
        ),
        source_note=(
            "Made up by a program of this project (evalsite/refund_desk) with a fixed seed: people, "
            "orders, tickets, judges and verdicts are invented. It shows what real samples do not "
            "hold: recorded states, facts, injected faults, disputed and broken verdicts."
        ),
        rules=MADE_UP_RULES,
        reason="Kinds of the desk's tools.",
        parts=(*(_generated(release) for release in _MADE_UP), _PRODUCTION),
        tasks=TASKS,
        runs=tuple((release.name, run) for release in _MADE_UP for run in release.runs),
        has_contracts=True,
    ),
    _Sample(
        slug="tau-bench-airline",
        name="tau-bench airline",
        description="An airline's service agent: gpt-4o on tasks 0 to 24, four trials each.",
        source_note=(
            "Historical trajectories of tau-bench (sierra-research/tau-bench), MIT licence, "
            "copyright Sierra; commit and checksum in "
            "evalsite/sample/tau_bench_airline/SOURCE.txt."
        ),
        rules=AIRLINE_RULES,
        reason=_KINDS_AND_WORDING,
        parts=(_stored("gpt-4o", "tau_bench_airline/gpt-4o-airline.tasks00-24.json.gz"),),
    ),
)


class SampleError(Exception):
    """A file of the sample was not taken."""


@acting_as(Acting(Source.SAMPLE))
def load_sample(progress: Callable[[str], None]) -> None:
    """Load what is not loaded yet. `progress` gets a line for each file that is."""
    people = _people()
    for sample in SAMPLES:
        system = _system(sample, people)
        done = _finished(system)
        for part in sample.parts:
            if part.key in done:
                continue
            progress(f"{sample.name}: {Path(part.name).name}")
            process_upload(_upload(system, part, people[Role.ENGINEER]).pk)
        if sample.has_contracts:
            load_contracts(
                system,
                engineer=people[Role.ENGINEER],
                reviewer=people[Role.REVIEWER],
                progress=progress,
            )
            second, third = _further_reviewers()
            reviewers = Reviewers(people[Role.REVIEWER], second, third, people[Role.ENGINEER])
            load_reviews(system, reviewers, progress)
            load_gates(
                system,
                owner=people[Role.OWNER],
                engineer=people[Role.ENGINEER],
                progress=progress,
            )


def _people() -> dict[Role, User]:
    """The people of the demo, named like their roles. Only the owner, who signs, has a password."""
    people = {role: _person(role.value, role.value) for role in DEMO_ROLES}
    give_owner_password(people[Role.OWNER], settings.EVALSITE_DATA)
    return people


def _further_reviewers() -> tuple[User, ...]:
    """More reviewers of the demo: two label each item, and nobody decides on their own verdict."""
    return tuple(_person(name, name.replace("-", " ")) for name in FURTHER_REVIEWERS)


def _person(username: str, last_name: str) -> User:
    person, is_new = User.objects.get_or_create(
        username=username, defaults={"first_name": "Demo", "last_name": last_name}
    )
    if is_new:
        person.set_unusable_password()
        person.save(update_fields=["password"])
    return person


@transaction.atomic
def _system(sample: _Sample, people: dict[Role, User]) -> System:
    """The system with its members, rules, tasks and declared runs, made whole or not at all."""
    if system := System.objects.filter(slug=sample.slug).first():
        return system
    system = create_system(sample.name, slug=sample.slug, by=people[Role.OWNER])
    for role, person in people.items():
        set_member(system, person, role)
    for person in _further_reviewers():
        set_member(system, person, Role.REVIEWER)
    system.description, system.source_note = sample.description, sample.source_note
    system.shown_rules = RulesVersion.objects.create(
        system=system,
        number=2,
        document=rule_set_document(sample.rules),
        reason=sample.reason,
        created_by=people[Role.ENGINEER],
    )
    system.save(update_fields=["description", "source_note", "shown_rules"])
    _name_tasks(system, sample.tasks)
    for release, run in sample.runs:
        declare_run(
            release_named(system, release, by=people[Role.ENGINEER]),
            run.name,
            trials=run.trials,
            task_ids=run.task_ids,
            by=people[Role.ENGINEER],
            now=timezone.now(),
        )
    return system


def _name_tasks(system: System, named: tuple[MadeUpTask, ...]) -> None:
    tasks = tasks_named(system, [one.task_id for one in named])
    for one in named:
        task = tasks[one.task_id]
        task.title, task.family, task.split = one.title, one.family, one.split
    Task.objects.bulk_update(tasks.values(), ["title", "family", "split"])


def _finished(system: System) -> set[str | None]:
    finished = [UploadState.DONE.value, UploadState.FAILED.value]
    rows = Upload.objects.filter(system=system, door=Door.SAMPLE.value, job__state__in=finished)
    return set(rows.values_list("idempotency_key", flat=True))


def _upload(system: System, part: _Part, by: User) -> Upload:
    if earlier := Upload.objects.filter(system=system, idempotency_key=part.key).first():
        return earlier
    outcome = accept_upload(
        part.chunks(),
        Offer(
            system=system,
            door=Door.SAMPLE,
            by=by,
            file_name=Path(part.name).name,
            release=part.release,
            idempotency_key=part.key,
        ),
        now=timezone.now(),
    )
    if isinstance(outcome, Refusal):
        raise SampleError(f"{part.name}: {outcome.sentence}")
    return outcome
