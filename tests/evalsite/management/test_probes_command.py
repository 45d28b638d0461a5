"""`manage.py probes`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from reviews.core.probes import ProbeKind
from reviews.models import Probe, ProbeBatch
from reviews.selectors.probes import bundle_lines
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from tests.support.probes import MODEL, batch_of, judged, probe_of
from traces.models import Trial

pytestmark = pytest.mark.django_db


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("probes", *words, stdout=out)
    return out.getvalue()


def make(*words: str) -> str:
    given = ("--criterion", "outcome", "--reason", "To try.", "--by", "engineer")
    return run("airline", "make", *given, *words)


@pytest.fixture
def trial(cast: Cast) -> Trial:
    said = [verdict(), verdict(grader=MODEL, kind="model", grader_version="1")]
    ingest(cast.system, [record("t1", 0, verdicts=said, calls=[("cancel", {"order": "A-1"})])])
    return Trial.objects.get()


def test_probes_are_made_of_drawn_and_of_named_trials(cast: Cast, trial: Trial) -> None:
    told = make()
    assert told == (
        "Batch 1: 5 probes (1 unchanged, 1 told to pass, 1 told to fail, 1 verbose, 1 wrong value)"
        "; /systems/airline/probes/1/\n"
    )
    make("--trial", str(trial.uuid), "--kind", "verbose", "--may-fall")
    batch = ProbeBatch.objects.get(number=2)
    assert batch.may_fall
    assert sorted(Probe.objects.filter(batch=batch).values_list("kind", flat=True)) == [
        "control",
        "verbose",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--criterion", "tone"), "no such criterion for judges: 'tone'"),
        (("--rubric-version", "9"), "no such criterion"),
        (("--digest", "9"), "no such criterion"),
        (("--trial", "first"), "'first' is no id of a trial."),
        (("--by", "viewer"), "Only an engineer or a reviewer"),
        (("--by", "nobody"), "There is no person"),
        (("--kind", "padded"), "No changed copy can be made"),
        (("--n", "0"), "1 to 50 trials"),
    ],
)
def test_what_is_wrong_is_told(
    cast: Cast, trial: Trial, words: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(CommandError, match=sentence):
        make(*words)


def test_criteria_of_one_name_are_told_apart_by_digest(cast: Cast) -> None:
    rubric = "task: {}\nsemantic: [{{rubric: truthful, version: {}, question: Is it?}}]\n"
    said = [verdict(criterion="truthful", grader=MODEL, kind="model", rubric_version="1")]
    ingest(cast.system, [record("t1", 0, verdicts=said), record("t2", 0, verdicts=said)])
    for task, version in (("t1", "'1'"), ("t2", "'2'")):
        contract_in_effect(cast.system, rubric.format(task, version), by=cast.engineer)
    with pytest.raises(CommandError, match=r"Several criteria are called .*--digest: [0-9a-f]{32}"):
        make("--criterion", "truthful")
    make("--criterion", "truthful", "--rubric-version", "2")
    batch = ProbeBatch.objects.get()
    assert (batch.rubric_version, batch.question) == ("2", "Is it?")
    assert batch.criterion_digest is not None
    make("--criterion", "truthful", "--digest", batch.criterion_digest.hex)
    assert ProbeBatch.objects.get(number=2).criterion_digest == batch.criterion_digest


def test_a_bundle_is_written_to_a_file_or_out(cast: Cast, trial: Trial, tmp_path: Path) -> None:
    batch = batch_of(cast)
    whole = "".join(bundle_lines(batch))
    file = tmp_path / "bundle.jsonl"

    assert run("airline", "export", "1") == whole
    assert run("airline", "export", "1", "--output", str(file)) == ""
    assert file.read_text() == whole
    with pytest.raises(CommandError, match="airline has no batch of probes 2"):
        run("airline", "export", "2")
    with pytest.raises(CommandError, match="cannot be written"):
        run("airline", "export", "1", "--output", str(tmp_path))


def test_batches_and_what_judges_made_of_them_are_listed(cast: Cast, trial: Trial) -> None:
    assert run("airline", "list") == ""
    batch = batch_of(cast, [ProbeKind.VERBOSE, ProbeKind.INJECTION])
    assert run("airline", "list", "1") == (
        "Batch 1 on outcome\nNo judge has said anything of it yet.\n"
    )
    line = judged(probe_of(batch, ProbeKind.INJECTION), "pass")
    ingest(cast.system, [line], release=None)

    assert run("airline", "list") == (
        "1  outcome  3 probes of 1 trial, 1 judge version: To try the judges.\n"
    )
    assert run("airline", "list", "1") == (
        "Batch 1 on outcome\n"
        "judge one 1: failed, 2 missing\n"
        "    unchanged: 1 missing\n"
        "    told to pass: 1 held, 1 wrong\n"
        "    verbose: 1 missing\n"
    )
    listed: dict[str, Any] = json.loads(run("airline", "list", "--json"))
    assert (listed["number"], listed["n_judges"]) == (1, 1)
    told = json.loads(run("airline", "list", "1", "--json"))
    assert told["judges"][0]["has_failed"] is True


def test_all_batches_are_listed(cast: Cast, trial: Trial) -> None:
    for _ in range(51):
        batch_of(cast, [ProbeKind.VERBOSE])
    lines = run("airline", "list").splitlines()
    assert [line.split()[0] for line in lines] == [str(n) for n in range(51, 0, -1)]
