"""One way in, read from top to bottom.

*upload stored and acknowledged → format reader → trials, calls, paths, verdicts stored →
dispositions → figures*. This is the one place that joins both apps. The truth about a job is a
row in PostgreSQL; a Celery message is only a hint. Every job is safe to run twice, at once or days
later: a batch of records, its place in the ledger and the checkpoint are one transaction.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from evalsite.after_calibration import read_after_upload, releases_of_judges
from evalsite.after_review import decide_in_portions
from evalsite.common.locks import exclusive
from evalsite.probe_verdicts import (
    IS_A_PROBE,
    Named,
    ProbeRecord,
    follow_probe_verdicts,
    named_probes,
    take_probe_verdicts,
)
from evalsite.projections import refresh_figures
from reviews.services.verdicts import (
    ArrivedTrial,
    IncomingVerdict,
    StoredVerdict,
    VerdictOutcome,
    WaitingTarget,
    attach_waiting,
    hold_verdicts,
    store_verdicts,
)
from traces.core.formats import ReadOptions, format_of
from traces.core.records import (
    Finding,
    GraderKind,
    ParsedTask,
    ParsedVerdict,
    ParsedVerdicts,
    RunFacts,
    Source,
    TrialKey,
    UnreadableUploadError,
)
from traces.core.text_marks import clean_text
from traces.models import (
    Door,
    LineOutcome,
    Release,
    Run,
    System,
    Trial,
    Upload,
    UploadJob,
    UploadLine,
    UploadState,
    User,
)
from traces.selectors.reading_limits import reading_limits
from traces.selectors.rules import rules_of, shown_rules_id
from traces.selectors.trials import trials_by_external_id, trials_by_key
from traces.services import work
from traces.services.packing import PackedItem, PackedTrial
from traces.services.reading import Order, batches_of
from traces.services.rules import ask_suggestions
from traces.services.trials import (
    IncomingTrial,
    Stored,
    StoredTrial,
    ingest_locks,
    store_trials,
)
from traces.services.uploads import stored_path

log = logging.getLogger("evalsite.pipeline")

FIGURES_EVERY_SECONDS = 5.0
MOST_TRIES = 5
MOST_LINES = 10_000


class _AnotherWorkerError(Exception):
    """Another worker has taken the upload further meanwhile; this one gives way."""


class _RulesMovedError(Exception):
    """Pages show other rules by now than those that the path keys at hand were made with."""


def process_upload(upload_id: int) -> None:
    """Read an upload to its end, from its checkpoint on.

    Safe to call again at any time: a finished upload is left as it is, and of two workers at
    once one gives way. Raises what the database or the disk raises; the sweeper tries again.
    """
    with exclusive("evalsite.upload", upload_id) as is_mine:
        if not is_mine:
            return
        upload = Upload.objects.select_related("system__shown_rules", "release", "job").get(
            pk=upload_id
        )
        if not _begin(upload):
            return
        try:
            _read(upload)
        except UnreadableUploadError as error:
            _end(upload, UploadState.FAILED, failure=error.finding.sentence)
        except _AnotherWorkerError:
            log.info("upload gives way", extra={"upload": str(upload.uuid)})
        else:
            if UploadJob.objects.filter(upload=upload, n_stored__gt=0).exists():
                ask_suggestions(upload.system, now=timezone.now())
            _end(upload, UploadState.DONE)


def _begin(upload: Upload) -> bool:
    """Count the try; False when there is nothing to do, or no hope."""
    now = timezone.now()
    with transaction.atomic():
        job = UploadJob.objects.select_for_update().get(upload=upload)
        if job.state in (UploadState.DONE.value, UploadState.FAILED.value):
            return False
        if job.n_tries >= MOST_TRIES:
            job.state = UploadState.FAILED.value
            job.failure = (
                f"Reading stopped {MOST_TRIES} times in a row behind record {job.n_read}; "
                "what was read before is stored. The log of the worker names the cause."
            )
            job.finished_at = job.touched_at = now
            job.save()
            return False
        job.state = UploadState.PROCESSING.value
        job.n_tries += 1
        job.started_at = job.started_at or now
        job.touched_at = now
        job.save()
    upload.job = job
    return True


def _end(upload: Upload, state: UploadState, *, failure: str = "") -> None:
    now = timezone.now()
    UploadJob.objects.filter(upload=upload).update(
        state=state.value, failure=clean_text(failure), finished_at=now, touched_at=now
    )
    log.info("upload read", extra={"upload": str(upload.uuid), "state": state.value})


def _read(upload: Upload) -> None:
    touched: set[int] = set()
    while not _read_on(upload, touched):
        upload.system = System.objects.select_related("shown_rules").get(pk=upload.system_id)
        log.info(
            "upload reads on under other rules",
            extra={"upload": str(upload.uuid), "rules": upload.system.shown_rules_id},
        )
    # What an earlier try of this job stored counts too.
    refresh_figures(upload.system, touched | _tasks_of(upload))
    follow_probe_verdicts(upload, now=timezone.now())


def _read_on(upload: Upload, touched: set[int]) -> bool:
    """Read behind the checkpoint; False when the rules moved before the end was reached."""
    release, rules = upload.release, rules_of(upload.system)
    options = ReadOptions(
        format=upload.format_asked,
        release=release.name if release else None,
        limits=reading_limits(Door(upload.door)),
        rejection=rules.rejection,
    )
    order = Order(path=stored_path(upload), options=options, rules=rules, skip=upload.job.n_read)
    UploadJob.objects.filter(upload=upload).update(format=format_of(order.path, options))
    refreshed = time.monotonic()
    for batch in batches_of(order, folder=settings.BASE_DIR):
        try:
            touched |= _store(upload, batch)
        except _RulesMovedError:
            return False
        if time.monotonic() - refreshed > FIGURES_EVERY_SECONDS:
            refresh_figures(upload.system, touched)
            refreshed = time.monotonic()
    return True


def _tasks_of(upload: Upload) -> set[int]:
    return set(Trial.objects.filter(upload=upload).values_list("task_id", flat=True).distinct())


@dataclass(slots=True)
class _Ledger:
    """What a batch adds to the job's counts, and the lines a person should know of."""

    received: int = 0
    stored: int = 0
    duplicate: int = 0
    conflict: int = 0
    refused: int = 0
    trials: int = 0
    verdicts: int = 0
    verdicts_refused: int = 0
    waiting: int = 0
    warnings: int = 0
    lines: list[tuple[LineOutcome, Source, Finding]] = field(default_factory=list)

    def refuse(self, item: PackedItem, findings: Iterable[Finding]) -> None:
        self.received += 1
        self.refused += 1
        self.lines.extend((LineOutcome.REFUSED, item.source, finding) for finding in findings)

    def note(self, item: PackedItem) -> None:
        """What is odd about a part of the upload that is no record."""
        self.warnings += len(item.warnings)
        self.lines.extend((LineOutcome.NOTE, item.source, finding) for finding in item.warnings)

    def settle(
        self,
        item: PackedItem,
        *,
        conflicts: Sequence[Finding],
        is_new: bool,
        refusals: Sequence[Finding],
    ) -> None:
        """Put a readable record under exactly one heading."""
        self.received += 1
        if conflicts:
            self.conflict += 1
        elif is_new:
            self.stored += 1
        else:
            self.duplicate += 1
        self.verdicts_refused += len(refusals)
        self.lines.extend((LineOutcome.CONFLICT, item.source, finding) for finding in conflicts)
        self.lines.extend((LineOutcome.PARTLY, item.source, finding) for finding in refusals)


@transaction.atomic
def _store(upload: Upload, batch: Sequence[PackedItem]) -> set[int]:
    """Store one batch with its ledger and checkpoint. Returns the ids of the tasks it touched."""
    now = timezone.now()
    job = UploadJob.objects.select_for_update().get(upload=upload)
    if job.n_read != upload.job.n_read or job.state != UploadState.PROCESSING.value:
        raise _AnotherWorkerError
    ledger = _Ledger()
    store = _Store(upload, ledger, now)
    touched = store.run(batch)
    _list_lines(upload, ledger.lines)
    last = batch[-1].source
    upload.job.n_read += len(batch)
    UploadJob.objects.filter(pk=job.pk).update(
        n_read=upload.job.n_read,
        bytes_read=last.offset + last.length,
        n_tries=0,
        touched_at=now,
        n_received=F("n_received") + ledger.received,
        n_stored=F("n_stored") + ledger.stored,
        n_duplicate=F("n_duplicate") + ledger.duplicate,
        n_conflict=F("n_conflict") + ledger.conflict,
        n_refused=F("n_refused") + ledger.refused,
        n_trials=F("n_trials") + ledger.trials,
        n_verdicts=F("n_verdicts") + ledger.verdicts,
        n_verdicts_refused=F("n_verdicts_refused") + ledger.verdicts_refused,
        n_waiting=F("n_waiting") + ledger.waiting,
        n_warnings=F("n_warnings") + ledger.warnings,
    )
    return touched


def _list_lines(upload: Upload, lines: Sequence[tuple[LineOutcome, Source, Finding]]) -> None:
    """Keep the lines that a person should know of, up to a bound; the ledger counts them all."""
    if not lines:
        return
    room = MOST_LINES - UploadLine.objects.filter(upload=upload).count()
    UploadLine.objects.bulk_create(
        [
            UploadLine(
                upload=upload,
                outcome=outcome.value,
                number=source.number,
                member=clean_text(source.member)[-512:],
                offset=source.offset,
                length=source.length,
                code=finding.code[:64],
                place=clean_text(finding.place)[:500],
                sentence=clean_text(finding.sentence),
            )
            for outcome, source, finding in lines[: max(room, 0)]
        ]
    )


class _Store:
    """Stores the records of one batch, inside its transaction."""

    def __init__(self, upload: Upload, ledger: _Ledger, now: datetime) -> None:
        self.upload, self.system = upload, upload.system
        self.ledger, self.now = ledger, now
        self.releases: dict[str, Release] = {}
        self.runs: dict[tuple[int, str], Run] = {}

    def run(self, batch: Sequence[PackedItem]) -> set[int]:
        readable = [item for item in batch if self._is_readable(item)]
        probes = named_probes(self.system, readable)
        on_probes = [item for item in readable if id(item) in probes]
        readable = [item for item in readable if id(item) not in probes]
        releases = {release.pk: release for item in readable for release in self._releases(item)}
        if any(map(_is_of_judges, readable)):
            releases |= {release.pk: release for release in releases_of_judges(self.system)}
        ingest_locks(self.system, releases.values())
        # The rules move under the same lock: what is stored now has the keys that pages ask for.
        if shown_rules_id(self.system) != self.system.shown_rules_id:
            raise _RulesMovedError
        self._store_on_probes(on_probes, probes)
        for item in readable:
            if isinstance(item.content, ParsedTask):
                work.store_task(self.system, item.content)
            elif isinstance(item.content, RunFacts):
                self._note_run(item.content)
        return self._store_evidence(readable)

    def _is_readable(self, item: PackedItem) -> bool:
        if item.content is not None:
            return True
        if item.refusals:
            self.ledger.refuse(item, item.refusals)
        self.ledger.note(item)
        return False

    def _releases(self, item: PackedItem) -> Iterator[Release]:
        content = item.content
        if isinstance(content, PackedTrial):
            yield self._release(content.trial.agent_version)
        elif isinstance(content, ParsedVerdicts) and content.agent_version is not None:
            yield self._release(content.agent_version)

    def _release(self, version: str | None) -> Release:
        if self.upload.release:
            return self.upload.release
        name = version or ""
        if name not in self.releases:
            self.releases[name] = work.release_named(self.system, name, by=self.upload.by)
        return self.releases[name]

    def _run_name(self, key: TrialKey | None) -> str:
        return self.upload.run_name or (key.run if key else None) or work.DEFAULT_RUN

    def _run(self, release: Release, key: TrialKey | None) -> Run:
        name = self._run_name(key)
        if (release.pk, name) not in self.runs:
            begun = self.upload.received_at
            self.runs[release.pk, name] = work.run_named(release, name, now=begun)
        return self.runs[release.pk, name]

    def _note_run(self, facts: RunFacts) -> None:
        if self.upload.release:
            work.note_details(self._run(self.upload.release, None), facts.details)

    def _store_evidence(self, items: Sequence[PackedItem]) -> set[int]:
        incoming = self._incoming([i for i in items if isinstance(i.content, PackedTrial)])
        stored = store_trials(self.system, self.upload, [one for _, one in incoming], now=self.now)
        touched = {one.task.pk for _, one in incoming}
        trials = dict(zip((id(item) for item, _ in incoming), stored, strict=True))
        given = self._trial_verdicts(incoming, stored)
        targets, waiting = self._verdicts_alone(items)
        results = store_verdicts(self.system, [v for _, v in given + targets], now=self.now)
        by_item: dict[int, list[StoredVerdict]] = {}
        for (item, _), result in zip(given + targets, results, strict=True):
            by_item.setdefault(id(item), []).append(result)
        for item in items:
            self._settle(item, trials.get(id(item)), by_item.get(id(item), []), waiting)
        arrived = self._arrived(incoming, stored)
        attached = attach_waiting(self.system, arrived, now=self.now)
        self.ledger.verdicts += sum(a.outcome is VerdictOutcome.NEW for a in attached)
        # A verdict that waited and contradicts one that came with its trial.
        self.ledger.lines.extend(
            (LineOutcome.NOTE, Source(0), late.finding) for late in attached if late.finding
        )
        changed = {a.trial_id for a in arrived} | {v.trial_id for _, v in given + targets}
        judged = {
            one.trial_id
            for (_, one), result in zip(given + targets, results, strict=True)
            if result.outcome is VerdictOutcome.NEW and one.verdict.kind is GraderKind.MODEL
        }
        if attached:
            judged |= {a.trial_id for a in arrived}
        changed |= set(read_after_upload(self.system, judged, now=self.now))
        return touched | decide_in_portions(changed, now=self.now)

    def _store_on_probes(self, items: Sequence[PackedItem], probes: Named) -> None:
        """Verdicts on probes are kept apart; a trial record that bears a probe's name is refused."""
        taken = take_probe_verdicts(self.upload, items, probes, now=self.now)
        for item in items:
            if isinstance(item.content, PackedTrial):
                self.ledger.refuse(item, (IS_A_PROBE,))
            else:
                self._settle_on_probe(item, taken[id(item)])

    def _settle_on_probe(self, item: PackedItem, record: ProbeRecord) -> None:
        refusals = (*item.refusals, *record.refusals)
        if refusals and not record.stored:
            self.ledger.refuse(item, refusals)
            return
        n_new = sum(v.outcome is VerdictOutcome.NEW for v in record.stored)
        self.ledger.warnings += len(item.warnings)
        self.ledger.verdicts += n_new
        self.ledger.settle(
            item,
            conflicts=[v.finding for v in record.stored if v.finding],
            is_new=n_new > 0,
            refusals=refusals,
        )

    def _incoming(self, items: Sequence[PackedItem]) -> list[tuple[PackedItem, IncomingTrial]]:
        contents = [item.content for item in items if isinstance(item.content, PackedTrial)]
        trials = [content.trial for content in contents]
        tasks = work.tasks_named(self.system, {trial.key.task_id for trial in trials})
        wanted = [
            (trial.key.task_id, uuid.UUID(bytes=trial.task_digest) if trial.task_digest else None)
            for trial in trials
        ]
        versions = work.task_versions(tasks, wanted)
        incoming: list[tuple[PackedItem, IncomingTrial]] = []
        for item, content, (task_id, digest) in zip(items, contents, wanted, strict=True):
            trial = content.trial
            release = self._release(trial.agent_version)
            one = IncomingTrial(
                packed=content,
                source=item.source,
                warnings=item.warnings,
                release=release,
                run=self._run(release, trial.key),
                task=tasks[task_id],
                version=versions[task_id, digest or work.EMPTY_DEFINITION],
            )
            incoming.append((item, one))
            work.note_agent(release, trial)
        return incoming

    def _trial_verdicts(
        self, incoming: Sequence[tuple[PackedItem, IncomingTrial]], stored: Sequence[StoredTrial]
    ) -> list[tuple[PackedItem, IncomingVerdict]]:
        """The verdicts inside trial records. Those of a record in conflict are refused with it."""
        return [
            (item, self._verdict(item, result.trial_id, one.trial.digest, verdict, result))
            for (item, one), result in zip(incoming, stored, strict=True)
            if result.outcome is not Stored.CONFLICT
            for verdict in one.trial.verdicts
        ]

    def _verdict(
        self,
        item: PackedItem,
        trial_id: int,
        digest: bytes,
        verdict: ParsedVerdict,
        result: StoredTrial | None = None,
    ) -> IncomingVerdict:
        return IncomingVerdict(
            trial_id=trial_id,
            trial_digest=uuid.UUID(bytes=digest),
            verdict=verdict,
            upload_id=self.upload.pk,
            line=item.source.number,
            is_resent=result is not None and result.outcome is Stored.DUPLICATE,
        )

    def _verdicts_alone(
        self, items: Sequence[PackedItem]
    ) -> tuple[list[tuple[PackedItem, IncomingVerdict]], dict[int, int]]:
        """Verdicts without their trial: those whose trial is stored, and how many wait anew."""
        found: list[tuple[PackedItem, IncomingVerdict]] = []
        waiting: dict[int, int] = {}
        lone = [i for i in items if isinstance(i.content, ParsedVerdicts)]
        for item, content, trial in self._targets(lone):
            if trial:
                found += [
                    (item, self._verdict(item, trial[0], trial[1].bytes, verdict))
                    for verdict in content.verdicts
                ]
            else:
                waiting[id(item)] = self._hold(item, content)
        return found, waiting

    def _targets(
        self, items: Sequence[PackedItem]
    ) -> Iterator[tuple[PackedItem, ParsedVerdicts, tuple[int, uuid.UUID] | None]]:
        contents = [(i, i.content) for i in items if isinstance(i.content, ParsedVerdicts)]
        external = trials_by_external_id(
            self.system, {c.external_id for _, c in contents if c.external_id}
        )
        keyed = trials_by_key(self.system, [c.key for _, c in contents if c.key])
        for item, content in contents:
            release = self._named_release(content)
            key = content.key
            if content.external_id:
                rows = external.get(content.external_id, [])
            elif key:
                rows = [
                    row
                    for row in keyed.get((key.task_id, key.trial, key.attempt), [])
                    if row.run_name == self._run_name(key)
                ]
            else:
                rows = []
            rows = [row for row in rows if release is None or row.release_id == release.pk]
            yield item, content, (rows[0].trial_id, rows[0].digest) if len(rows) == 1 else None

    def _named_release(self, content: ParsedVerdicts) -> Release | None:
        if self.upload.release:
            return self.upload.release
        if content.agent_version is None:
            return None
        return self._release(content.agent_version)

    def _hold(self, item: PackedItem, content: ParsedVerdicts) -> int:
        target = WaitingTarget(
            release=self._named_release(content),
            run_name=self._run_name(content.key),
            key=content.key,
            external_id=content.external_id,
        )
        return hold_verdicts(
            self.system,
            target,
            content.verdicts,
            upload=self.upload,
            line=item.source.number,
        )

    def _settle(
        self,
        item: PackedItem,
        trial: StoredTrial | None,
        verdicts: Sequence[StoredVerdict],
        waiting: dict[int, int],
    ) -> None:
        ledger = self.ledger
        if not isinstance(item.content, PackedTrial | ParsedVerdicts):
            ledger.note(item)
            return
        ledger.warnings += len(item.warnings)
        conflicts = [v.finding for v in verdicts if v.finding]
        if trial and trial.finding:
            conflicts.insert(0, trial.finding)
        n_new = sum(v.outcome is VerdictOutcome.NEW for v in verdicts)
        n_waiting = waiting.get(id(item), 0)
        is_trial_new = trial is not None and trial.outcome is Stored.NEW
        ledger.trials += is_trial_new
        ledger.verdicts += n_new
        ledger.waiting += n_waiting
        ledger.settle(
            item,
            conflicts=conflicts,
            is_new=is_trial_new or n_new > 0 or n_waiting > 0,
            refusals=item.refusals,
        )

    def _arrived(
        self, incoming: Sequence[tuple[PackedItem, IncomingTrial]], stored: Sequence[StoredTrial]
    ) -> list[ArrivedTrial]:
        return [
            ArrivedTrial(
                trial_id=result.trial_id,
                digest=uuid.UUID(bytes=one.trial.digest),
                release_id=one.release.pk,
                run_name=one.run.name,
                task_id=one.task.task_id,
                label=one.trial.key.trial,
                attempt=one.trial.key.attempt,
                external_id=clean_text(one.trial.external_id),
            )
            for (_, one), result in zip(incoming, stored, strict=True)
            if result.outcome is Stored.NEW
        ]


def _is_of_judges(item: PackedItem) -> bool:
    """Whether a record brings verdicts of judges."""
    content = item.content
    if isinstance(content, PackedTrial):
        return any(verdict.kind is GraderKind.MODEL for verdict in content.trial.verdicts)
    return isinstance(content, ParsedVerdicts) and any(
        verdict.kind is GraderKind.MODEL for verdict in content.verdicts
    )


@transaction.atomic
def declare_run(
    release: Release,
    name: str,
    *,
    trials: int,
    task_ids: Iterable[str] = (),
    by: User | None,
    now: datetime,
) -> Run:
    """Declare a run (`traces.services.work.declare_run`) and count its trials as missing."""
    run = work.declare_run(release, name, trials=trials, task_ids=task_ids, by=by, now=now)
    refresh_figures(release.system, run.declared_tasks.values_list("task_id", flat=True))
    return run


def stale_uploads(*, now: datetime, older_than_seconds: float) -> list[int]:
    """Uploads whose job nobody has touched for a while: a hint was lost, or a worker died."""
    open_states = [UploadState.RECEIVED.value, UploadState.PROCESSING.value]
    return list(
        UploadJob.objects.filter(
            state__in=open_states, touched_at__lt=now - timedelta(seconds=older_than_seconds)
        )
        .order_by("touched_at", "pk")
        .values_list("upload_id", flat=True)[:500]
    )
