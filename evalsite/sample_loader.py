"""The sample evidence that ships with the project: two systems and the people of the demo.

Loading goes the ordinary way in. It may be killed at any moment: the next load finishes it, and a
finished one is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.db import transaction
from django.utils import timezone

from evalsite.pipeline import process_upload
from traces.core.rule_documents import rule_set_document
from traces.core.rules import ArgumentRule, Arithmetic, Ignore, RuleSet
from traces.core.trajectory import ToolKind
from traces.models import Door, Role, RulesVersion, System, Upload, UploadState, User
from traces.services.acceptance import Offer, Refusal, accept_upload, file_chunks
from traces.services.people import create_system, set_member

FOLDER: Final = Path(__file__).resolve().parent / "sample"
DEMO_ROLES: Final = (Role.ENGINEER, Role.REVIEWER, Role.OWNER, Role.VIEWER)

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


@dataclass(frozen=True, slots=True)
class _Sample:
    """One system of the sample, with the releases that its files are of."""

    slug: str
    name: str
    description: str
    source_note: str
    files: tuple[tuple[str, str], ...]  # release, path below the sample folder


_JUDGES: Final = tuple(
    ("azure-gpt-4o", f"tau2_airline/judges/airline.summary.{name}_v1.json.gz")
    for name in (
        "customer_outcome",
        "policy_chain_of_thought",
        "policy_conversation",
        "quick_triage",
    )
)
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
        files=(
            *(
                (release, f"tau2_airline/{release}.json.gz")
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
        slug="tau-bench-airline",
        name="tau-bench airline",
        description="An airline's service agent: gpt-4o on tasks 0 to 24, four trials each.",
        source_note=(
            "Historical trajectories of tau-bench (sierra-research/tau-bench), MIT licence, "
            "copyright Sierra; commit and checksum in "
            "evalsite/sample/tau_bench_airline/SOURCE.txt."
        ),
        files=(("gpt-4o", "tau_bench_airline/gpt-4o-airline.tasks00-24.json.gz"),),
    ),
)


class SampleError(Exception):
    """A file of the sample was not taken."""


def load_sample(progress: Callable[[str], None]) -> None:
    """Load what is not loaded yet. `progress` gets a line for each file that is."""
    people = _people()
    for sample in SAMPLES:
        system = _system(sample, people)
        done = _finished(system)
        for release, path in sample.files:
            if _key(path) in done:
                continue
            progress(f"{sample.name}: {Path(path).name}")
            process_upload(_upload(system, release, path, people[Role.ENGINEER]).pk)


def _people() -> dict[Role, User]:
    """The people of the demo, named like their roles. None of them has a password."""
    people: dict[Role, User] = {}
    for role in DEMO_ROLES:
        person, is_new = User.objects.get_or_create(
            username=role.value, defaults={"first_name": "Demo", "last_name": role.value}
        )
        if is_new:
            person.set_unusable_password()
            person.save(update_fields=["password"])
        people[role] = person
    return people


@transaction.atomic
def _system(sample: _Sample, people: dict[Role, User]) -> System:
    """The system with its rules and members, made whole or not at all."""
    if system := System.objects.filter(slug=sample.slug).first():
        return system
    system = create_system(sample.name, slug=sample.slug, by=people[Role.OWNER])
    for role, person in people.items():
        set_member(system, person, role)
    system.description, system.source_note = sample.description, sample.source_note
    system.shown_rules = RulesVersion.objects.create(
        system=system,
        number=2,
        document=rule_set_document(AIRLINE_RULES),
        reason="Kinds of the airline's tools, and where the wording of an argument is free.",
        created_by=people[Role.ENGINEER],
    )
    system.save(update_fields=["description", "source_note", "shown_rules"])
    return system


def _key(path: str) -> str:
    return f"sample:{path}"


def _finished(system: System) -> set[str | None]:
    finished = [UploadState.DONE.value, UploadState.FAILED.value]
    rows = Upload.objects.filter(system=system, door=Door.SAMPLE.value, job__state__in=finished)
    return set(rows.values_list("idempotency_key", flat=True))


def _upload(system: System, release: str, path: str, by: User) -> Upload:
    if earlier := Upload.objects.filter(system=system, idempotency_key=_key(path)).first():
        return earlier
    outcome = accept_upload(
        file_chunks(FOLDER / path),
        Offer(
            system=system,
            door=Door.SAMPLE,
            by=by,
            file_name=Path(path).name,
            release=release,
            idempotency_key=_key(path),
        ),
        now=timezone.now(),
    )
    if isinstance(outcome, Refusal):
        raise SampleError(f"{path}: {outcome.sentence}")
    return outcome
