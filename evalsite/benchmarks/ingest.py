"""How fast the real way in is, beside what the machine could do at best with the same rows."""

from __future__ import annotations

import contextlib
import cProfile
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from django.apps import apps
from django.db import connection
from django.utils import timezone

from evalsite import pipeline
from evalsite.benchmarks.bare import BareLimit, bare_limits
from evalsite.benchmarks.generator import trials
from evalsite.benchmarks.measuring import Stages, peak_memory, reset_peak_memory
from traces.models import Door, System, TrialDisposition, Upload
from traces.services import work
from traces.services.people import create_system
from traces.services.uploads import UploadRequest, receive_upload, staged

_BLOCK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an ingest took."""

    n_trials: int
    n_verdicts: int
    n_bytes: int  # of the upload
    seconds: float  # until all is committed and queryable
    processor_seconds: float  # of this process, in `seconds`; the server's own are not in it
    reader_seconds: float  # of processor, of the process that reads the records
    stages: dict[str, float]  # seconds
    bare: tuple[BareLimit, ...]
    peak_bytes: int
    base_bytes: int  # memory held before it began
    database_bytes: dict[str, int]  # by table, indexes included

    @property
    def trials_per_second(self) -> float:
        """Trials a second until all of them are committed and queryable."""
        return self.n_trials / self.seconds

    @property
    def bytes_per_trial(self) -> float:
        """Bytes of database a trial takes."""
        return sum(self.database_bytes.values()) / self.n_trials


def measure_ingest(
    folder: Path,
    *,
    n_trials: int,
    n_tasks: int,
    n_rounds: int = 1,
    seed: int = 0,
    profile: cProfile.Profile | None = None,
) -> IngestResult:
    """Ingest generated trials into the current database, which must be empty, and measure it.

    The fastest round counts, of the ingest as of the bare loaders; each round fills a system of its
    own. A profile takes its own share of the time: the rates that come with one are too low.
    """
    file = folder / "trials.jsonl"
    write_trials(file, n_trials=n_trials, n_tasks=n_tasks, seed=seed)
    empty = _database_bytes()
    first = _round(file, 0, n_trials, profile)
    sizes = {table: size - empty.get(table, 0) for table, size in _database_bytes().items()}
    bare = bare_limits(file, _tables(), folder)
    others = [_round(file, number, n_trials, None) for number in range(1, n_rounds)]
    best = min([first, *others], key=lambda each: each.seconds)
    return IngestResult(
        n_trials=n_trials,
        n_verdicts=first.n_verdicts,
        n_bytes=file.stat().st_size,
        seconds=best.seconds,
        processor_seconds=best.processor_seconds,
        reader_seconds=best.reader_seconds,
        stages=best.stages,
        bare=bare,
        peak_bytes=first.peak_bytes,
        base_bytes=first.base_bytes,
        database_bytes={table: size for table, size in sizes.items() if size},
    )


def write_trials(file: Path, *, n_trials: int, n_tasks: int, seed: int = 0) -> None:
    """Generated trials as JSON Lines."""
    with file.open("wb") as out:
        out.writelines(trials(n_trials=n_trials, n_tasks=n_tasks, seed=seed))


@dataclass(frozen=True, slots=True)
class _Round:
    seconds: float
    processor_seconds: float
    reader_seconds: float
    n_verdicts: int
    stages: dict[str, float]
    peak_bytes: int
    base_bytes: int


def _round(file: Path, number: int, n_trials: int, profile: cProfile.Profile | None) -> _Round:
    system = create_system(f"benchmark {number}", by=None)
    stages = Stages()
    reset_peak_memory()
    base = peak_memory()
    reader = _children()
    began, processor = time.perf_counter(), time.process_time()
    with stages.watching(_STAGES), profile or contextlib.nullcontext():
        upload = ingest_file(system, file)
    n_queryable = TrialDisposition.objects.filter(trial__upload=upload).count()
    seconds, busy = time.perf_counter() - began, time.process_time() - processor
    peak = max(peak_memory(), _children_peak())
    job = upload.job
    job.refresh_from_db()
    if job.n_trials != n_trials or n_queryable != n_trials:
        raise AssertionError(f"{job.n_trials} of {n_trials} trials stored: {job.failure}")
    return _Round(seconds, busy, _children() - reader, job.n_verdicts, stages.seconds, peak, base)


def _children() -> float:
    """Processor seconds of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _children_peak() -> int:
    """The most memory that a child that has ended held, in bytes."""
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def ingest_file(system: System, file: Path) -> Upload:
    """Take a file in by the real door and read it to its end."""
    with file.open("rb") as source:
        chunks = iter(lambda: source.read(_BLOCK), b"")
        with staged(chunks, max_bytes=None) as kept:
            request = UploadRequest(
                system=system,
                release=None,
                run_name="",
                file_name=file.name,
                format_asked="auto",
                door=Door.COMMAND,
                by=None,
            )
            upload = receive_upload(kept, request, now=timezone.now())
    pipeline.process_upload(upload.pk)
    return upload


_STAGES: tuple[tuple[str, object, str], ...] = (
    ("keep the upload", sys.modules[__name__], "receive_upload"),
    ("wait for the process that reads the records", pipeline, "batches_of"),
    ("find releases, runs, tasks, versions", work, "release_named"),
    ("find releases, runs, tasks, versions", work, "run_named"),
    ("find releases, runs, tasks, versions", work, "tasks_named"),
    ("find releases, runs, tasks, versions", work, "task_versions"),
    ("find releases, runs, tasks, versions", work, "note_agent"),
    ("store trials, transcripts, calls, paths", pipeline, "store_trials"),
    ("store verdicts", pipeline, "store_verdicts"),
    ("look for verdicts that waited", pipeline, "attach_waiting"),
    ("decide dispositions", pipeline, "decide_in_portions"),
    ("count figures", pipeline, "refresh_figures"),
    ("commit", connection, "commit"),
)


def _tables() -> list[str]:
    return sorted(
        model._meta.db_table  # noqa: SLF001 - Django's documented way to a table's name
        for app in ("traces", "reviews")
        for model in apps.get_app_config(app).get_models()
    )


def _database_bytes() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t, pg_total_relation_size(t::regclass) FROM unnest(%s::text[]) t", [_tables()]
        )
        return dict(cursor.fetchall())
