"""An approved rules version worked out for every stored trajectory, then shown.

Safe to run twice, at once or days later, and to be killed anywhere: each batch is a transaction
with its checkpoint, and pages show the version before until the last transaction, which gives the
last trajectories their keys, moves the pointer and counts all figures anew, under the lock that
uploads take for each batch. Of all versions only two have keys: the shown one and this one.
"""

from __future__ import annotations

import logging
import time

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalsite.background import begun
from evalsite.common.gate_marks import releases_of, touch_gates
from evalsite.common.locks import exclusive
from evalsite.projections import refresh_figures
from evalsite.stored_keys import (
    Keyless,
    KeyMaker,
    trajectories_after,
    trajectories_without_keys,
)
from traces.models import RulesJob, RulesVersion, System, Trajectory, WorkState
from traces.permissions.rules import shown_later
from traces.selectors.rules import shown_rules_id
from traces.services.rules import ask_suggestions
from traces.services.trials import ingest_locks

log = logging.getLogger("evalsite.rules")

_OPEN = (WorkState.WAITING.value, WorkState.WORKING.value)


_FEW = 100  # trajectories whose keys may wait for the last transaction


class _StoppedError(Exception):
    """Somebody stopped the work."""


class _OvertakenError(Exception):
    """A version that was approved later is shown; the text is a sentence for people."""


def recompute(rules_id: int) -> bool:
    """Work an approved version out from its checkpoint on, and show it.

    False when there was nothing to do, or another worker is at rules of the same system: this one
    gives way, and the sweeper sends it again. Raises what the database raises.
    """
    version = RulesVersion.objects.select_related("system").get(pk=rules_id)
    with exclusive("evalsite.rules", version.system_id) as is_mine:
        if not is_mine or begun(RulesJob.objects.all(), rules_id, now=timezone.now()) is None:
            return False
        try:
            _Recomputation(version).run()
        except _StoppedError:
            log.info("work on rules gives way to a stop", extra=_ids(version))
        except _OvertakenError as error:
            _give_up(version, str(error))
        return True


def _give_up(version: RulesVersion, why: str) -> None:
    now = timezone.now()
    RulesJob.objects.filter(pk=version.pk, state__in=_OPEN).update(
        state=WorkState.CANCELLED.value, failure=why, touched_at=now, finished_at=now
    )
    log.info("work on rules given up", extra={**_ids(version), "why": why})


def next_open_rules(rules_id: int) -> int | None:
    """The approved version of the same system that waits to be worked out after this one."""
    version = RulesVersion.objects.get(pk=rules_id)
    jobs = RulesJob.objects.filter(rules__system=version.system_id, state__in=_OPEN)
    return jobs.exclude(pk=rules_id).order_by("pk").values_list("pk", flat=True).first()


def _ids(version: RulesVersion) -> dict[str, object]:
    return {"system": version.system.slug, "rules": version.number}


class _Recomputation:
    """One worker's stretch of the work on a version."""

    def __init__(self, version: RulesVersion) -> None:
        self.version, self.system = version, version.system
        self.maker = KeyMaker(version)
        self.began = time.monotonic()
        self.n_written = 0

    def run(self) -> None:
        self._prepare()
        while self._next_batch():
            pass
        while self._catch_up():
            pass
        self._show()
        seconds = time.monotonic() - self.began
        log.info(
            "rules worked out and shown",
            extra={
                **_ids(self.version),
                "trajectories": self.n_written,
                "seconds": round(seconds, 2),
                "trajectories_a_second": round(self.n_written / max(seconds, 0.001)),
            },
        )

    @transaction.atomic
    def _prepare(self) -> None:
        """Count what is to do. Batches remove the keys of other versions, which start anew."""
        job = self._job()
        self._check_not_overtaken()
        self._others().update(after=0, n_done=0, n_total=None, started_at=None)
        job.n_total = Trajectory.objects.filter(task__system=self.system).count()
        job.save(update_fields=["n_total"])

    def _others(self) -> QuerySet[RulesJob]:
        jobs = RulesJob.objects.filter(rules__system=self.system, after__gt=0)
        return jobs.exclude(pk=self.version.pk).exclude(state=WorkState.DONE.value)

    @transaction.atomic
    def _next_batch(self) -> bool:
        """Give keys to the next trajectories behind the checkpoint; False when there are none."""
        job = self._job()
        rows = trajectories_after(self.system.pk, job.after)
        if not rows:
            return False
        self._write(job, rows)
        job.after = rows[-1].pk
        job.save(update_fields=["after"])
        return True

    @transaction.atomic
    def _catch_up(self) -> bool:
        """Give keys to trajectories that were stored behind our back; False when few are left."""
        job = self._job()
        rows = trajectories_without_keys(self.system.pk, self.version.pk)
        if rows:
            self._write(job, rows)
        return len(rows) > _FEW

    @transaction.atomic
    def _show(self) -> None:
        """Let pages show the version: nothing is stored meanwhile, so that no key is missing."""
        ingest_locks(self.system, ())
        System.objects.select_for_update(no_key=True).get(pk=self.system.pk)
        job = self._job()
        self._check_not_overtaken()
        while rows := trajectories_without_keys(self.system.pk, self.version.pk):
            self._write(job, rows)
        System.objects.filter(pk=self.system.pk).update(shown_rules=self.version)
        refresh_figures(self.system)
        now = timezone.now()
        # Which tools hand over to a person is one of the rules.
        touch_gates(releases_of(self.system.pk), now=now)
        ask_suggestions(self.system, now=now)
        job.state = WorkState.DONE.value
        job.n_total = job.n_done
        job.touched_at = job.finished_at = now
        job.save()

    def _job(self) -> RulesJob:
        """The row, locked: whoever stops the work waits for the batch, or the batch sees it."""
        job = RulesJob.objects.select_for_update().get(pk=self.version.pk)
        if not job.is_open:
            raise _StoppedError
        return job

    def _check_not_overtaken(self) -> None:
        if why := shown_later(self.version):
            raise _OvertakenError(why)

    def _write(self, job: RulesJob, rows: list[Keyless]) -> None:
        _remove_other_keys([row.pk for row in rows], shown_rules_id(self.system))
        self.maker.write(rows)
        self.n_written += len(rows)
        job.state, job.n_tries = WorkState.WORKING.value, 0
        job.n_done += len(rows)
        job.touched_at = timezone.now()
        job.save(update_fields=["state", "n_tries", "n_done", "touched_at"])


def _remove_other_keys(trajectory_ids: list[int], shown: int) -> None:
    """Remove all keys of trajectories but those that pages show, by the index."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM traces_trajectorypaths WHERE trajectory_id = ANY(%s) AND rules_id <> %s",
            [trajectory_ids, shown],
        )
