"""Edits made directly in the database as superuser: each is named, and nothing else is."""

from __future__ import annotations

import json
import os
import random
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.utils import InternalError, ProgrammingError
from django.utils import timezone

from evalsite.models import AuditEvent
from evalsite.sealed_rows import WORDS
from evalsite.signing import attestation_of, void_sign_off
from evalsite.verification import VerifiedSystem, verify_system
from reviews.core.disposition import AdjudicationRuling, Mark
from reviews.core.gate.states import Meaning
from reviews.models import (
    Adjudication,
    CheckMark,
    CheckMarkWithdrawal,
    Criterion,
    ExclusionConfirmation,
    ExclusionEnd,
    RiskTier,
    Rubric,
    RubricVersion,
    RunExclusion,
    SignOff,
    TierRetirement,
    Verdict,
)
from tests.support.cast import PASSWORD, Cast
from tests.support.evidence import ingest
from tests.support.signing import REJECTED, SignedWorld, a_ready_release, signed, trials
from tests.support.tampering import (
    Edit,
    as_superuser,
    columns_of,
    draw_edit,
    rows_that_matter,
)
from traces.models import Run, SplitChange, Task, Trial

pytestmark = pytest.mark.django_db

N_EDITS = int(os.environ.get("TAMPER_EDITS", "20"))


def a_signed_world(cast: Cast) -> SignedWorld:
    """A release that was signed, rejected and declared void, on one row of nearly everything."""
    world = a_ready_release(cast)
    now = timezone.now() - timedelta(hours=1)
    system, task = cast.system, Task.objects.get(system=cast.system)
    trial, run = Trial.objects.order_by("pk")[0], Run.objects.get()
    mark = CheckMark.objects.create(
        system=system,
        task=task,
        criterion="outcome",
        mark=Mark.DEFECTIVE.value,
        reason="x",
        by=cast.reviewer,
        marked_at=now,
    )
    CheckMarkWithdrawal.objects.create(mark=mark, reason="x", by=cast.reviewer, withdrawn_at=now)
    Adjudication.objects.create(
        system=system,
        trial=trial,
        criterion=Criterion.objects.filter(system=system).order_by("pk")[0],
        ruling=AdjudicationRuling.FAIL.value,
        reason="x",
        cited_steps=[1],
        seen=[1],
        evidence_order=0,
        evidence_digest=trial.digest,
        is_by_party=False,
        by=cast.reviewer,
        decided_at=now,
    )
    left = RunExclusion.objects.create(run=run, reason="x", by=cast.owner, left_out_at=now)
    ExclusionConfirmation.objects.create(
        exclusion=left, reason="x", by=world.second, confirmed_at=now
    )
    ExclusionEnd.objects.create(exclusion=left, reason="x", by=cast.owner, ended_at=now)
    SplitChange.objects.create(
        system=system, task=task, old="", new="", reason="x", by=cast.engineer, changed_at=now
    )
    RubricVersion.objects.create(
        rubric=Rubric.objects.create(system=system, name="tone"),
        version="1",
        text="x",
        reason="x",
        by=cast.reviewer,
        created_at=now,
    )
    old = RiskTier.objects.create(system=system, name="old", made_by=cast.owner, made_at=now)
    TierRetirement.objects.create(tier=old, reason="x", by=cast.owner, retired_at=now)
    rejected = signed(world, terms=REJECTED)
    void_sign_off(rejected, by=cast.owner, password=PASSWORD, reason="x", now=timezone.now())
    signed(world)
    return world


def words_in(verified: VerifiedSystem) -> str:
    """All that was found, as one text."""
    alterations = [*verified.audit, *(a for each in verified.sign_offs for a in each.alterations)]
    return "\n".join(f"{each.place}: {each.sentence}" for each in alterations)


def test_nothing_is_found_where_nothing_was_altered(cast: Cast) -> None:
    """Later evidence, verdicts, contracts, thresholds and signatures are no alteration."""
    world = a_signed_world(cast)
    assert words_in(verify_system(cast.system)) == ""
    ingest(cast.system, trials([8], amount=500), release="1.4.0", run="nightly", by=cast.engineer)
    ingest(cast.system, trials([1]), release="1.5.0", run="other", by=cast.engineer)
    signed(world, terms=REJECTED, by=world.second)
    for number in range(200):
        verified = verify_system(cast.system)
        assert (number, verified.n_alterations, words_in(verified)) == (number, 0, "")
        if number > 20 and N_EDITS < 200:
            break


def test_edits_in_every_table_are_named(cast: Cast) -> None:
    world = a_signed_world(cast)
    rows = rows_that_matter(SignOff.objects.order_by("-pk")[0])
    draw = random.Random(20261201)  # noqa: S311 - a seeded draw of edits
    edits: list[Edit] = []
    tables: set[str] = set()
    while len(edits) < N_EDITS:
        with as_superuser():
            edit = draw_edit(draw, rows)
            if edit is None:
                continue
            found = words_in(verify_system(cast.system))
            assert found, edit
            if edit.trial:
                assert edit.trial in found, (edit, found)
            elif edit.table in WORDS:
                assert _names_it(edit, found), (edit, found)
        edits.append(edit)
        tables.add(edit.table)
    assert words_in(verify_system(cast.system)) == ""
    assert len(tables) > (20 if N_EDITS >= 60 else 10)
    assert world.release.name == "1.4.0"


def _names_it(edit: Edit, found: str) -> bool:
    own = WORDS[edit.table]
    return own in found or str(edit.key) in found


def test_a_character_of_a_verdict_the_newest_events_and_the_table_itself(cast: Cast) -> None:
    """cases/evidence-tampering--edit-after-signature."""
    world = a_ready_release(cast)
    row = signed(world)
    call_command("verify", system=cast.system.slug, stdout=StringIO())
    verdict = Verdict.objects.select_related("trial").order_by("pk")[0]
    with as_superuser():
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE reviews_verdict SET rationale = rationale || '.' WHERE id = %s",
                [verdict.pk],
            )
        out = StringIO()
        with pytest.raises(SystemExit) as caught:
            call_command("verify", system=cast.system.slug, stdout=out)
        assert caught.value.code == 1
        assert f"Trial {verdict.trial.uuid} (trial {verdict.trial.label} of task t1)" in (
            out.getvalue()
        )
    events = AuditEvent.objects.filter(system=cast.system).order_by("-seq")
    head = f"{events[0].seq}:{events[0].hash}"
    with as_superuser():
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM evalsite_auditevent WHERE id IN (SELECT id FROM evalsite_auditevent"
                " WHERE system_id = %s ORDER BY seq DESC LIMIT 3)",
                [cast.system.pk],
            )
        out = StringIO()
        with pytest.raises(SystemExit):
            call_command("verify", system=cast.system.slug, head=head, stdout=out)
        assert "ends early" in out.getvalue()
    for statement in (
        "UPDATE traces_trial SET label = 'x'",
        "DELETE FROM evalsite_auditevent",
        "TRUNCATE reviews_signoffvoid",
    ):
        refused = pytest.raises((InternalError, ProgrammingError))
        with refused, transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    assert row.meaning == Meaning.APPROVED.value


def test_verify_tells_of_a_file_and_of_what_was_altered_in_it(cast: Cast, tmp_path: Path) -> None:
    world = a_ready_release(cast)
    row = signed(world)
    file = tmp_path / "attestation.json"
    file.write_bytes(attestation_of(row))
    out = StringIO()
    call_command("verify", str(file), stdout=out)
    assert out.getvalue().splitlines()[1] == (
        f"Intact: signed with key {row.key_id}, nothing was altered."
    )
    out = StringIO()
    call_command("verify", system=cast.system.slug, head=str(file), json=True, stdout=out)
    public = tmp_path / "public"
    keys = StringIO()
    call_command("keys", "export", stdout=keys)
    public.write_text(keys.getvalue())
    out = StringIO()
    call_command("verify", str(file), keys=str(public), json=True, stdout=out)
    assert json.loads(out.getvalue()) == {"file": str(file), "key": row.key_id, "findings": []}
    file.write_bytes(attestation_of(row).replace(b"in-toto", b"in-tutu"))
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("verify", str(file), stdout=out)
    assert "The payload type is not application/vnd.in-toto+json." in out.getvalue()
    assert columns_of("traces_runtask") == ["id", "run_id", "task_id"]
