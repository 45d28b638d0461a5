"""Signing against evidence that arrives, in two processes, and what no reader may ever see.

One process signs a release, another one uploads a failing trial of it, from one barrier on and each
after a drawn wait. A third one, the caller, reads meanwhile, each time one state of the database.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from django.db import connection, connections, transaction
from django.utils import timezone

from evalsite.gates import refresh_gate
from evalsite.signing import SigningError, attestation_of, sign_release, signing_page, signing_view
from evalsite.verification import verify_file
from reviews.models import SignOff
from tests.support.cast import PASSWORD, Cast
from tests.support.evidence import ingest
from tests.support.signing import APPROVED, trials
from traces.models import Release, Trial, User

LATE = 99  # the label of the trial that arrives


@dataclass(slots=True)
class History:
    """What came of all rounds."""

    rounds: int = 0
    signed_first: int = 0
    evidence_first: int = 0
    reads: int = 0
    bad: list[str] = field(default_factory=list)


@contextlib.contextmanager
def two_processes(cast: Cast) -> Iterator[tuple[Connection, Connection]]:
    """A process that signs and one that uploads, each told by a pipe what to do."""
    connections.close_all()  # before the fork: no two processes share one
    context = multiprocessing.get_context("fork")
    pipes, processes = [], []
    for work in (_signer, _uploader):
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(work, theirs, cast), daemon=True)
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    try:
        yield pipes[0], pipes[1]
    finally:
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join(timeout=20)


def _serve(work: Any, pipe: Connection, cast: Cast) -> None:
    while (order := pipe.recv()) is not None:
        at, *what = order
        time.sleep(max(0.0, at - time.monotonic()))
        try:
            pipe.send(work(cast, *what))
        except Exception as error:  # noqa: BLE001 - told to the caller, which fails by it
            pipe.send(f"error: {error!r}")
    connections.close_all()


def _signer(cast: Cast, release_pk: int, digest: str) -> str:
    release = Release.objects.select_related("system").get(pk=release_pk)
    try:
        sign_release(
            release,
            by=User.objects.get(pk=cast.owner.pk),
            password=PASSWORD,
            terms=APPROVED,
            seen_digest=digest,
            now=timezone.now(),
        )
    except SigningError as error:
        return f"refused: {error.sentence}"
    return "signed"


def _uploader(cast: Cast, name: str) -> str:
    job = ingest(
        cast.system, trials([LATE], amount=500), release=name, run="late", by=cast.engineer
    )
    return f"stored {job.n_trials}"


def race(cast: Cast, *, rounds: int, seed: int) -> History:
    """Run rounds, each on a release of its own that is ready to be signed."""
    history = History()
    draw = random.Random(seed)  # noqa: S311 - a seeded draw of waits
    with two_processes(cast) as (signer, uploader):
        for number in range(rounds):
            _round(cast, history, draw, f"race-{number}", signer, uploader)
            history.rounds += 1
    return history


def _round(
    cast: Cast,
    history: History,
    draw: random.Random,
    name: str,
    signer: Connection,
    uploader: Connection,
) -> None:
    ingest(cast.system, trials(range(3)), release=name, run="nightly", by=cast.engineer)
    release = Release.objects.select_related("system").get(system=cast.system, name=name)
    refresh_gate(release.pk, now=timezone.now())
    digest = signing_page(release, cast.owner, now=timezone.now()).digest
    start = time.monotonic() + 0.005
    # Signing computes the gate first: an upload a little later meets it in the middle.
    signer.send((start + draw.uniform(0, 0.06), release.pk, digest))
    uploader.send((start + draw.uniform(0, 0.12), name))
    while not (signer.poll(0) and uploader.poll(0)):
        _read(release, cast, history)
        history.reads += 1
        time.sleep(0.005)
    said, stored = signer.recv(), uploader.recv()
    _judge(release, cast, history, digest, said, stored)


@transaction.atomic
def _read(release: Release, cast: Cast, history: History) -> None:
    """One state of the database: a valid approval beside a trial that it lacks is bad."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    view = signing_view(release, None, now=timezone.now())
    has_trial = Trial.objects.filter(release=release.pk, label=str(LATE)).exists()
    if has_trial and view.state.value == "approved" and not view.marks:
        history.bad.append(f"{release.name}: read as valid beside the new trial")


def _judge(
    release: Release, cast: Cast, history: History, digest: str, said: str, stored: str
) -> None:
    rows = list(SignOff.objects.filter(release=release.pk).select_related("manifest"))
    if stored != "stored 1":
        history.bad.append(f"{release.name}: the upload came to {stored!r}")
    if said == "signed":
        history.signed_first += 1
        _judge_signed(release, history, digest, rows)
    elif said.startswith("refused: The evidence changed") and not rows:
        history.evidence_first += 1
    else:
        history.bad.append(f"{release.name}: {said!r} with {len(rows)} signatures")


def _judge_signed(release: Release, history: History, digest: str, rows: list[SignOff]) -> None:
    if [row.manifest.digest for row in rows] != [digest]:
        history.bad.append(f"{release.name}: signed another digest than was seen")
        return
    checked = verify_file(attestation_of(rows[0]))
    statement: Any = checked.statement
    labels = Counter(each["label"] for each in statement["predicate"]["manifest"]["trials"])
    if checked.alterations or labels[str(LATE)] or sum(labels.values()) != 3:
        history.bad.append(f"{release.name}: the signed manifest is not what was seen")
    for is_computed in (False, True):
        if is_computed:
            refresh_gate(release.pk, now=timezone.now())
        view = signing_view(release, None, now=timezone.now())
        if [mark.value for mark in view.marks] != ["stale"]:
            history.bad.append(f"{release.name}: not stale, computed anew: {is_computed}")
