"""Odd evidence and odd people, from ingest to the gate, its files and its signatures.

Files: tests/data/cases. What stands there is tried, and what lies beside it.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from evalsite.gate_report import ExitStatus
from evalsite.models import AuditEvent
from evalsite.signing import SigningError, signing_page
from reviews.core.gate.model import Check
from reviews.models import SignOff
from reviews.permissions.sign_offs import UPLOADED
from tests.support.access_world import ROUTES, rule_of, world_of
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.gates import gate_of, results, thresholds_in_force
from tests.support.keys import header
from tests.support.signing import a_ready_release, an_owner, signed, trials
from tests.support.tampering import as_superuser
from tests.support.visits import root
from traces.models import Member, Release, Role, Trial, Upload, User
from traces.services.work import declare_run, release_named

pytestmark = pytest.mark.django_db

FOLDER = Path(__file__).resolve().parents[1] / "data" / "cases"


def send(file: str, cast: Cast) -> None:
    """A case by the command, into the system of the cast. It may refuse a line."""
    with contextlib.suppress(SystemExit):
        call_command(
            "ingest", str(FOLDER / file), "--system", cast.system.slug, stdout=io.StringIO()
        )


def gate(release: str, *words: str) -> tuple[int, str]:
    """The exit status of the command, and what it prints."""
    out = io.StringIO()
    try:
        call_command("gate", "--system", "airline", "--release", release, *words, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def check(cast: Cast, kind: str, release: str = "1.4.0") -> Check:
    """One check of a release's only tier."""
    (section,) = gate_of(cast.system, release).gate.sections
    (found,) = [each for each in section.checks if each.threshold.kind.value == kind]
    return found


def said(found: Check) -> tuple[str, Fraction | None, str]:
    return found.result.value, found.measured, found.sentence


def tried(cast: Cast, passing: int, n: int, *, task: str = "t1", release: str = "1.4.0") -> None:
    """Trials of a task, of which the first ones reach the outcome."""
    words = ["pass"] * passing + ["fail"] * (n - passing)
    found = [record(task, at, verdicts=[verdict(word)]) for at, word in enumerate(words)]
    ingest(cast.system, found, release=release, by=cast.engineer)


# --- threshold-rounding


@pytest.mark.parametrize(
    ("file", "result", "rate", "sentence", "status"),
    [
        (
            "threshold-rounding--exactly-at.jsonl",
            "met",
            Fraction(19, 20),
            "19 of 20 graded trials reached the outcome, of 20 run: 95.0 %.",
            ExitStatus.WAITING,  # nobody looked for anything prohibited
        ),
        (
            "threshold-rounding--rounds-up.jsonl",
            "not_met",
            Fraction(17, 18),
            "17 of 18 graded trials reached the outcome, of 18 run: 94.4 %.",
            ExitStatus.BLOCKED,
        ),
    ],
    ids=["exactly-at", "rounds-up"],
)
def test_a_rate_is_held_against_its_threshold_as_a_fraction(
    file: str, result: str, rate: Fraction, sentence: str, status: ExitStatus, cast: Cast
) -> None:
    thresholds_in_force(cast.system, by=cast.owner, outcome_rate={"limit": "0.95"})
    send(file, cast)
    assert said(check(cast, "outcome_rate")) == (result, rate, sentence)
    code, text = gate("1.4.0")
    assert (code, sentence in text) == (status, True)


@pytest.mark.parametrize(
    ("passing", "n", "limit", "result", "text"),
    [
        pytest.param(3, 10, "0.3", "met", "30.0 %", id="0.1 + 0.2"),
        pytest.param(2, 3, "0.6666", "met", "66.7 %", id="just met"),
        pytest.param(2, 3, "0.6667", "not_met", "66.6 %", id="just missed"),
        pytest.param(1, 3, "0.3333", "met", "33.333 %", id="more digits"),
        pytest.param(3, 3, "1", "met", "100.0 %", id="all"),
    ],
)
def test_what_lies_next_to_a_threshold_reads_on_its_own_side(
    passing: int, n: int, limit: str, result: str, text: str, cast: Cast
) -> None:
    thresholds_in_force(cast.system, by=cast.owner, outcome_rate={"limit": limit})
    tried(cast, passing, n)
    found = check(cast, "outcome_rate")
    assert said(found) == (
        result,
        Fraction(passing, n),
        f"{passing} of {n} graded trials reached the outcome, of {n} run: {text}.",
    )


# --- pass-k-small-n, average-of-averages


def test_one_task_with_too_few_trials_makes_pass_hat_k_impossible_to_tell(cast: Cast) -> None:
    limits = {"limit": "0.5", "k": 4, "of": "outcome"}
    thresholds_in_force(cast.system, by=cast.owner, pass_hat_k=limits)
    send("pass-k-small-n--uneven.jsonl", cast)
    found = check(cast, "pass_hat_k")
    assert said(found) == (
        "cannot_tell",
        Fraction(1),
        "pass^4 is 100.0 % over 1 of 3 tasks with 4 graded trials or more.",
    )
    assert found.settles == "pass^4 needs 4 trials a task: loan-k1z has 1 and loan-k2 has 2."
    assert (found.range, found.n_more) == (None, 5)


def test_k_as_large_as_n_and_a_task_of_another_release(cast: Cast) -> None:
    limits = {"limit": "0.5", "k": 3, "of": "outcome"}
    thresholds_in_force(cast.system, by=cast.owner, pass_hat_k=limits, fewest_tasks={"limit": 3})
    tried(cast, 3, 3)
    tried(cast, 2, 3, task="t2")
    tried(cast, 3, 3, task="t3", release="1.5.0")
    assert said(check(cast, "pass_hat_k")) == (
        "met",
        Fraction(1, 2),
        "pass^3 is 50.0 % over 2 tasks with 3 graded trials or more.",
    )
    fewest = check(cast, "fewest_tasks")
    assert (fewest.result.value, fewest.measured) == ("cannot_tell", Fraction(2))


def test_over_no_trial_nothing_can_be_told(cast: Cast) -> None:
    least = {"limit": "0"}
    thresholds_in_force(
        cast.system,
        by=cast.owner,
        since=timezone.now() - timedelta(days=1),
        outcome_rate=least,
        recovery_rate=least,
        pass_hat_k={"limit": "0", "k": 1, "of": "outcome"},
        harness_errors={"limit": 9},
        cost_p95={"limit": "9"},
    )
    release = release_named(cast.system, "1.4.0", by=cast.engineer)
    assert gate("1.4.0")[0] == ExitStatus.WAITING
    tried(cast, 1, 1, release="1.5.0")  # the task is known, by another release
    declare_run(release, "nightly", trials=3, task_ids=["t1"], by=cast.engineer, now=timezone.now())
    assert set(results(gate_of(cast.system, "1.4.0")).values()) == {"cannot_tell"}


def test_a_mean_over_tasks_is_never_a_rate_over_trials(cast: Cast) -> None:
    thresholds_in_force(
        cast.system,
        by=cast.owner,
        outcome_rate={"limit": "0.5"},
        pass_hat_k={"limit": "0.5", "k": 1, "of": "outcome"},
        cost_p95={"limit": "0.19"},
    )
    send("average-of-averages--uneven-groups.jsonl", cast)
    assert said(check(cast, "outcome_rate")) == (
        "not_met",
        Fraction(1, 10),
        "1 of 10 graded trials reached the outcome, of 10 run: 10.0 %.",
    )
    assert said(check(cast, "pass_hat_k")) == (
        "met",
        Fraction(1, 2),
        "pass^1 is 50.0 % over 2 tasks with 1 graded trial or more.",
    )
    cost = check(cast, "cost_p95")
    assert (cost.result.value, cost.measured) == ("not_met", Fraction(1))


# --- stale-or-mixed-results


def test_a_release_counts_its_own_trials_alone(cast: Cast) -> None:
    thresholds_in_force(cast.system, by=cast.owner, outcome_rate={"limit": "1"})
    send("stale-or-mixed-results--two-versions.jsonl", cast)
    own = "3 of 3 graded trials reached the outcome, of 3 run: 100.0 %."
    other = "0 of 1 graded trial reached the outcome, of 1 run: 0.0 %."
    assert said(check(cast, "outcome_rate")) == ("met", Fraction(1), own)
    assert said(check(cast, "outcome_rate", "1.3.9")) == ("not_met", Fraction(0), other)
    digest = gate_of(cast.system, "1.4.0").digest

    send("stale-or-mixed-results--no-version.jsonl", cast)

    assert Trial.objects.filter(release__is_unversioned=True).count() == 2
    assert gate_of(cast.system, "1.4.0").digest == digest
    assert gate("") == (ExitStatus.USAGE, "Evidence that names no version has no gate.")
    with pytest.raises(SigningError) as caught:
        nothing = Release.objects.get(is_unversioned=True)
        signing_page(nothing, cast.owner, now=timezone.now())
    assert caught.value.status == 422


# --- signoff-identity, evidence-tampering


def test_an_owner_who_brought_one_trial_signs_nothing_of_the_release(cast: Cast) -> None:
    """cases/signoff-identity--two-person-tier: uploaded part of the evidence."""
    world = a_ready_release(cast)
    tomo = an_owner(cast, "tomo", since=timezone.now() - timedelta(days=3))
    member = Member.objects.filter(user=tomo)
    member.update(role=Role.ENGINEER.value)
    ingest(cast.system, trials([9]), release="1.4.0", run="nightly", by=tomo)
    member.update(role=Role.OWNER.value)
    with pytest.raises(SigningError) as caught:
        signed(world, by=tomo)
    assert (caught.value.status, caught.value.sentence) == (403, UPLOADED)
    assert not SignOff.objects.exists()


def verified(*words: str) -> tuple[int, str]:
    out = io.StringIO()
    try:
        call_command("verify", "--system", "airline", *words, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


def test_one_digit_of_a_threshold_and_the_newest_events_with_their_head(cast: Cast) -> None:
    """cases/evidence-tampering--edit-after-signature, by somebody who thinks of the head too."""
    signed(a_ready_release(cast))
    last, *_, before = AuditEvent.objects.filter(system=cast.system).order_by("-seq")[:4]
    assert verified("--head", f"{last.seq}:{last.hash}")[0] == 0
    with as_superuser(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE reviews_thresholdset"
            """ SET document = replace(document::text, '"limit": 3', '"limit": 2')::jsonb"""
        )
        assert cursor.rowcount == 1
        code, text = verified()
        assert code == 1
        assert [line for line in text.splitlines() if line.startswith("  ")] == [
            next(line for line in text.splitlines() if "threshold set" in line)
        ]
    with as_superuser(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM evalsite_auditevent WHERE seq > %s", [before.seq])
        cursor.execute(
            "UPDATE evalsite_audithead SET seq = %s, hash = %s, key_id = %s, tag = %s"
            " WHERE system_id = %s",
            [before.seq, before.hash, before.key_id, before.tag, cast.system.pk],
        )
        code, text = verified("--head", f"{last.seq}:{last.hash}")
        assert (code, f"The chain ends early: at event {before.seq}" in text) == (1, True)
    assert verified()[0] == 0


# --- cross-project-access


def test_a_key_stores_in_its_own_system_whatever_the_body_names(client: Client, cast: Cast) -> None:
    cache.clear()
    headers: Any = header(cast.system, cast.engineer)
    body = json.dumps({**record("t1", 0), "system": "elsewhere", "project": "elsewhere"})
    found = []
    for query in ("", "?project=elsewhere", "?system=elsewhere"):
        answer = client.post(
            f"/api/v1/uploads{query}",
            body,
            content_type="application/x-ndjson",
            **headers,
        )
        found.append(answer.status_code)
    assert found == [202, 202, 404]
    assert list(Upload.objects.values_list("system__slug", flat=True)) == ["airline"] * 2


FILTERS = (
    *("q", "release", "task", "run", "by", "id", "kind", "ordering", "sort", "order", "include"),
    *("family", "criterion", "grader", "judge", "tier", "person", "from", "to", "after", "before"),
    *("baseline", "with", "against", "trial", "case", "next", "act", "source"),
)


def test_no_filter_or_order_tells_of_another_system(client: Client, cast: Cast) -> None:
    """What names something of another system gets what a name of nothing gets."""
    own, other = (
        world_of(cast.system, cast.engineer),
        world_of(cast.other_system, cast.outsider),
    )
    ingest(
        cast.other_system,
        [record("SECRET-B", 0, verdicts=[verdict("fail", criterion="SECRET-B")])],
        release="SECRET-B",
        run="SECRET-B",
        by=cast.outsider,
    )
    client.force_login(cast.viewer)
    pages = [name for name, p in ROUTES.items() if rule_of(p) == "system:read"]
    assert len(pages) > 60

    def answer(name: str, value: Any) -> tuple[int, int]:
        got = client.get(own.path(name), dict.fromkeys(FILTERS, value))
        body = b"".join(got) if got.streaming else got.content
        return got.status_code, len(body)

    told = [name for name in pages if answer(name, "SECRET-B") != answer(name, "ABSENT-B")]
    assert told == []
    broken = [name for name in pages if answer(name, other.values["release"])[0] >= 500]
    assert broken == []


# --- csv-formula

FORMULA = re.compile(r"[\s\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20\u2212]|[\t\r\n]")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


@pytest.mark.parametrize("file", ["trials.csv", "overview.csv", "disputes.csv", "audit.csv"])
def test_no_name_is_a_formula_in_any_file(file: str, client: Client, cast: Cast) -> None:
    User.objects.filter(pk=cast.engineer.pk).update(first_name="=cmd|' /C calc'!A0", last_name="")
    cast.engineer.refresh_from_db()
    send("csv-formula--cells.jsonl", cast)
    both = [verdict("fail", criterion="+c", grader="=g")]
    both.append(verdict("pass", criterion="+c", grader="-h", kind="model"))
    found = [record("=1+1", 0, verdicts=both)]
    ingest(cast.system, found, release="@r", run="-run", by=cast.engineer)
    client.force_login(cast.viewer)
    body = b"".join(client.get(f"{root(cast.system)}{file}"))
    head, *rows = csv.reader(io.StringIO(body.decode(), newline=""))
    assert {len(row) for row in rows} == {len(head)}
    cells = [cell for row in rows for cell in row]
    assert [cell for cell in cells if FORMULA.match(cell) and not NUMBER.fullmatch(cell)] == []
    assert any(FORMULA.match(cell.removeprefix("'")) for cell in cells if cell.startswith("'"))
    if file == "trials.csv":
        assert len(rows) == 10
