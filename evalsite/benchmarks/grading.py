"""How fast stored trials are graded by a contract of ten checks, and what that does to pages.

Three measures. *Regrade*: trials that are stored are graded, and the contracts come into effect.
*Ingest*: the same trials come in once without and once with contracts in effect. *Pages*: some pages
are asked for while another process grades all trials, as a worker does, and while nobody does.

Beside the regrade stands a bare write: the rows of the same verdicts and dispositions, copied into
tables with the same indexes and nothing else done.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.db import connection, connections
from django.test import Client
from django.test.utils import override_settings
from django.utils import timezone

from evalsite import grading, regrading
from evalsite.benchmarks.bare import bare_limits
from evalsite.benchmarks.generator import N_RELEASES, trial_of, world_of
from evalsite.benchmarks.ingest import ingest_file
from evalsite.benchmarks.measuring import Stages, peak_memory, reset_peak_memory
from evalsite.contract_previews import work_out_contract_preview
from reviews.core import checks
from reviews.models import Regrade
from reviews.services.contracts import decide_contracts, draft_contracts, propose_contracts
from traces.core.rule_documents import rule_set_document
from traces.core.rules import RuleSet
from traces.core.trajectory import ToolKind
from traces.models import ContractOutcome, Role, RulesVersion, System, Task, Trial, User
from traces.services.people import create_system, set_member
from traces.web.addresses import Addresses

N_CHECKS = 10
_ROUNDS = 25
_KINDS = tuple(
    (tool, ToolKind.READ if tool.startswith("get") else ToolKind.WRITE)
    for tool in (
        "book_reservation",
        "cancel_reservation",
        "get_reservation_details",
        "get_user_details",
        "send_certificate",
        "update_reservation_flights",
    )
)
_PLAIN_STATIC = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

_CONTRACT = """\
task: "{task}"
facts: {{user_id: {user}}}
outcome:
  - changes: {{/notes/-: {{by: agent}}}}
    ignore: [/notes/*/at, /users/*/seen]
required:
  - {{id: user-seen, call: get_user_details, where: args.user_id == facts.user_id, before: book_reservation}}
  - id: reservation-seen
    any_of:
      - {{call: get_reservation_details, where: has(result.reservation_id)}}
      - {{call: get_user_details, where: 'result.reservations.size() > 0'}}
    before: cancel_reservation
  - {{id: asked, message: agent, where: 'text.contains("?")', before: update_reservation_flights}}
  - {{id: agreed, message: user, where: 'text.matches("(?i)\\\\b(yes|please|confirm)\\\\b")'}}
prohibited:
  - {{id: foreign-user, harm: data, call: get_user_details, where: args.user_id != facts.user_id}}
  - {{id: large-certificate, harm: money, call: send_certificate, where: args.amount > 150}}
  - {{id: promised, harm: money, message: agent, where: 'text.matches("(?i)full refund guaranteed")'}}
budget: {{tool_calls: {calls}, repeat_call: 5}}
"""


_WATCHED = (
    ("read transcripts and states", grading, "trial_evidence"),
    ("check them", checks, "checks_of"),
    ("write the verdicts", grading, "store_checks"),
    ("decide the trials", regrading, "decide_trials"),
    ("count the figures", regrading, "refresh_figures"),
)


@dataclass(frozen=True, slots=True)
class GradingResult:
    """What grading costs."""

    n_trials: int
    n_tasks: int
    n_verdicts: int  # that the regrade added
    seconds: float  # of the regrade
    processor_seconds: float  # of this process, the database's not among them
    stages: dict[str, float]  # seconds of the regrade
    bare_seconds: float  # to copy the same rows
    ingest_seconds: float  # without contracts
    graded_ingest_seconds: float  # with contracts in effect
    pages: dict[str, tuple[float, float]]  # milliseconds: while nobody grades, and meanwhile
    peak_bytes: int

    @property
    def per_second(self) -> float:
        """Trials that are graded in a second."""
        return self.n_trials / self.seconds


def measure_grading(folder: Path, *, n_trials: int, n_tasks: int) -> GradingResult:
    """Fill two systems, grade the trials of the first, and ask for its pages meanwhile."""
    file, few = folder / "grading.jsonl", folder / "few.jsonl"
    _write(file, n_trials, n_tasks)
    _write(few, n_tasks, n_tasks)
    system = _system("grading")
    ingest_seconds = _seconds(lambda: ingest_file(system, file))
    work = _approved(system, n_tasks)
    stages = Stages()
    reset_peak_memory()
    processor = time.process_time()
    with stages.watching(_WATCHED):
        seconds = _seconds(lambda: regrading.work_out_regrade(work.pk))
    processor_seconds = time.process_time() - processor
    peak = peak_memory()
    work.refresh_from_db()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    bare = bare_limits(file, ("reviews_verdict", "traces_trialdisposition"), folder)
    other = _system("graded at once")
    ingest_file(other, few)
    regrading.work_out_regrade(_approved(other, n_tasks).pk)
    return GradingResult(
        n_trials=n_trials,
        n_tasks=n_tasks,
        n_verdicts=work.n_verdicts,
        seconds=seconds,
        processor_seconds=processor_seconds,
        stages=stages.seconds,
        bare_seconds=next(one.seconds for one in bare if one.name == "ready"),
        ingest_seconds=ingest_seconds,
        graded_ingest_seconds=_seconds(lambda: ingest_file(other, file)),
        pages=_pages_meanwhile(system),
        peak_bytes=peak,
    )


def _system(name: str) -> System:
    """An empty system that knows the tools of the generated trials."""
    system = create_system(name, by=None)
    system.shown_rules = RulesVersion.objects.create(
        system=system,
        number=2,
        document=rule_set_document(RuleSet(tool_kinds=_KINDS)),
        reason="benchmark",
    )
    system.save(update_fields=["shown_rules"])
    return system


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _write(file: Path, n_trials: int, n_tasks: int) -> None:
    """Generated trials that say how they started and ended."""
    worlds = [world_of(0, task) for task in range(n_tasks)]
    with file.open("wb") as out:
        for number in range(n_trials):
            round_, task = divmod(number, n_tasks)
            trial, release = divmod(round_, N_RELEASES)
            world = worlds[task]
            record = trial_of(world, seed=0, release=release, trial=trial)
            start = {"users": {world.user_id: world.user}, "reservations": world.reservations}
            notes = [{"by": "agent", "at": number}] if number % 4 else []
            record["verdicts"] = []
            record["facts"] = {"user_id": world.user_id}
            record["initial_state"] = {**start, "notes": []}
            record["final_state"] = {**start, "notes": notes}
            out.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


def _approved(system: System, n_tasks: int, *, most_calls: int = 30) -> Regrade:
    """The regrade that waits to bring a contract of each task into effect."""
    engineer, owner = (_member(system, role) for role in (Role.ENGINEER, Role.OWNER))
    users = [world_of(0, task).user_id for task in range(n_tasks)]
    texts = [
        _CONTRACT.format(task=task, user=user, calls=most_calls) for task, user in enumerate(users)
    ]
    preview = draft_contracts(system, texts, by=engineer, now=timezone.now())
    work_out_contract_preview(preview.pk)
    preview.refresh_from_db()
    proposal = propose_contracts(preview, reason="benchmark", by=engineer, now=timezone.now())
    decide_contracts(
        proposal,
        outcome=ContractOutcome.APPROVED,
        reason="benchmark",
        by=owner,
        now=timezone.now(),
    )
    return Regrade.objects.get(proposal=proposal)


def _member(system: System, role: Role) -> User:
    person, _ = User.objects.get_or_create(username=f"{role.value} of {system.slug}")
    set_member(system, person, role)
    return person


def _pages_meanwhile(system: System) -> dict[str, tuple[float, float]]:
    """Median milliseconds of some pages, first alone, then while a worker process regrades."""
    reader = _member(system, Role.VIEWER)
    addresses = Addresses.of(system.slug)
    task = Task.objects.filter(system=system).order_by("pk")[0]
    trial = Trial.objects.filter(task=task).order_by("-n_messages", "pk")[0]
    pages = {
        "tasks page": addresses.tasks,
        "task page": addresses.task(task.uuid),
        "trial page": addresses.trial(trial.uuid),
        "overview": addresses.overview,
        "cases": addresses.cases,
    }
    with override_settings(STORAGES=_PLAIN_STATIC):
        client = Client(SERVER_NAME="localhost")
        client.force_login(reader, "django.contrib.auth.backends.ModelBackend")
        alone = _medians(client, pages, lambda round_: round_ < _ROUNDS)
        work = _approved(system, Task.objects.filter(system=system).count(), most_calls=29)
        connections.close_all()  # a process that is forked must not share them
        worker = multiprocessing.get_context("fork").Process(target=_work, args=(work.pk,))
        worker.start()
        try:
            meanwhile = _medians(client, pages, lambda _: worker.is_alive())
        finally:
            worker.join()
    return {name: (alone[name], meanwhile[name]) for name in pages}


def _work(regrade_pk: int) -> None:
    regrading.work_out_regrade(regrade_pk)
    connections.close_all()


def _medians(
    client: Client, pages: dict[str, str], goes_on: Callable[[int], bool]
) -> dict[str, float]:
    """Median milliseconds of each page, asked in turn; a first round to warm up does not count."""
    took: dict[str, list[float]] = {name: [] for name in pages}
    round_ = 0
    for address in pages.values():
        client.get(address)
    while not round_ or goes_on(round_):
        for name, address in pages.items():
            took[name].append(_seconds(lambda address=address: client.get(address)))  # type: ignore[misc]
        round_ += 1
    return {name: statistics.median(each) * 1000 for name, each in took.items()}
