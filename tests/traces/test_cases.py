"""Hostile and odd inputs, each through the command and each with the numbers that it must give.

`tests/data/cases/index.json` says in words what is expected of each file; large ones are made here.
"""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.db.models import Sum
from django.test import Client
from django.utils import timezone

from reviews.core.disposition import disputed_criteria
from reviews.core.estimators import pass_hat_k
from reviews.core.requirements import CHECKS_GRADER, EVIDENCE
from reviews.models import Case, Flag, Verdict, WaitingVerdict
from reviews.selectors.exports import ExportSelection, csv_rows, jsonl_lines
from reviews.selectors.figures import SystemFigures, system_figures
from reviews.selectors.votes import given_verdicts
from reviews.services.contracts import ContractFindingsError, draft_contracts
from tests.support.cast import Cast
from tests.support.contracts import brought_into_effect
from tests.support.evidence import ingest as ingest_records
from tests.support.evidence import ledger
from tests.support.keys import header
from traces.core.contracts.reading import read_contracts
from traces.core.paths import PathLevel
from traces.models import System, Trial, TrialDisposition, UploadJob
from traces.selectors.path_groups import passing_paths
from traces.selectors.systems import releases_named, system_named
from traces.services.people import create_system
from traces.services.uploads import uploads_root

pytestmark = pytest.mark.django_db

FOLDER = Path(__file__).resolve().parents[1] / "data" / "cases"
INDEX: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_text())
GENERATED = {
    "csv-formula--big-cell.jsonl",
    "decompression-bomb--64MiB.jsonl.gz",
    "many-steps--6000-messages.jsonl.gz",
}
CONTRACTS = sorted(case["file"] for case in INDEX if case["format"] == "contract-yaml")
FILES = sorted({case["file"] for case in INDEX} - GENERATED - {*CONTRACTS})
CHECKS = {case["file"]: case.get("checks", {}) for case in INDEX}
REFUSED_AS_A_WHOLE = {"empty-upload--zero-bytes.jsonl", "wrong-format--html-error-page.jsonl"}


def send(file: str, *more: str) -> tuple[int, dict[str, Any]]:
    """Exit code and ledger of a case, and of the files that follow it."""
    out, code = StringIO(), 0
    try:
        call_command("ingest", str(FOLDER / file), "--system", "Case", *more, "--json", stdout=out)
    except SystemExit as error:
        code = int(error.code or 0)
    return code, json.loads(out.getvalue())


def send_all(file: str) -> list[tuple[int, dict[str, Any]]]:
    then = next(case.get("then", []) for case in INDEX if case["file"] == file)
    return [send(name) for name in (file, *then)]


def system() -> System:
    found = system_named("case")
    assert found is not None
    return found


def figures(*releases: str) -> SystemFigures:
    found, missing = releases_named(system(), releases)
    assert not missing
    return system_figures(system(), found)


def n_groups(level: PathLevel = PathLevel.EXACT) -> int:
    """Passing paths of all tasks of a case as if they were one task's."""
    keys = set()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT p.{level.value} FROM traces_trial t JOIN traces_trajectorypaths p"
            " ON p.trajectory_id = t.trajectory_id"
        )
        keys = set(cursor.fetchall())
    return len(keys)


@pytest.mark.parametrize("file", FILES)
def test_the_ledger_balances_and_the_same_again_changes_nothing(file: str) -> None:
    first = send_all(file)
    state = end_state()
    again = send_all(file)

    for _, document in first:
        counts = document
        parts = ("stored", "duplicate", "conflict", "refused")
        assert counts["received"] == sum(counts[part] for part in parts)
    assert [code for code, _ in again] == [code for code, _ in first]
    for _, document in again:
        assert document["stored"] == 0
    assert end_state() == state


def end_state() -> tuple[Any, ...]:
    return (
        sorted(Trial.objects.values_list("digest", "label", "run__name", "release__name")),
        sorted(Verdict.objects.values_list("digest", "trial__label")),
        WaitingVerdict.objects.filter(attached_at=None).count(),
    )


@pytest.mark.parametrize("file", FILES)
def test_counts_are_as_the_index_says(file: str) -> None:
    checks = CHECKS[file]
    results = send_all(file)
    total = Counter[str]()
    for _, document in results:
        total.update({name: n for name, n in document.items() if isinstance(n, int)})

    names = {
        "trials_accepted": "trials",
        "trials_rejected": "refused",
        "duplicates": "duplicate",
        "conflicts": "conflict",
        "verdicts_rejected": "verdicts_refused",
    }
    for check, name in names.items():
        if check in checks:
            wanted = checks[check] if isinstance(checks[check], list) else [checks[check]]
            assert total[name] in wanted, check
    lines = [line for _, document in results for one in document["files"] for line in one["lines"]]
    refused = [line for line in lines if line["outcome"] == "refused"]
    assert all(line["sentence"].endswith((".", "…")) for line in lines)
    if "rejected_lines" in checks:
        assert [line["number"] for line in refused] == checks["rejected_lines"]
    if "verdicts" in checks:
        assert Counter(Verdict.objects.values_list("value", flat=True)) == checks["verdicts"]
    if "verdicts_waiting" in checks:
        waiting = WaitingVerdict.objects.filter(attached_at=None).count()
        assert waiting == checks["verdicts_waiting"]
    if "warnings_min" in checks:
        assert total["warnings"] >= checks["warnings_min"]
    if "http_status" in checks:
        assert results[0][0] == 2
    if "release" in checks:
        return
    if "passes" in checks:
        assert figures().total.passed == checks["passes"]
    if "graded" in checks:
        assert figures().total.graded == checks["graded"]
    if "run" in checks:
        assert figures().total.run == checks["run"]
    if "tasks" in checks:
        assert len(figures().tasks) == checks["tasks"]
    if "groups" in checks:
        assert n_groups() == checks["groups"]
    for level in ("tool_set", "reads_any_order"):
        if f"groups_{level}" in checks:
            assert n_groups(PathLevel(level)) == checks[f"groups_{level}"]
    if "total_cost_usd" in checks:
        cost = Trial.objects.aggregate(total=Sum("cost_usd"))["total"]
        assert cost == Decimal(checks["total_cost_usd"])
    if "cost_known" in checks:
        known = Trial.objects.exclude(cost_usd=None).count()
        assert known == checks["cost_known"]
    if "duration_known" in checks:
        assert Trial.objects.exclude(seconds=None).count() == checks["duration_known"]
    if isinstance(wanted_calls := checks.get("tool_calls_n"), int):
        assert [trial.n_tool_calls for trial in Trial.objects.all()] == [wanted_calls]


@pytest.mark.parametrize("file", FILES)
def test_the_door_for_programs_never_answers_500(client: Client, cast: Cast, file: str) -> None:
    cache.clear()
    body = (FOLDER / file).read_bytes()
    headers = header(cast.system, cast.engineer)
    address = "/api/v1/uploads"

    answer = client.post(address, body, content_type="application/octet-stream", **headers)

    assert answer.status_code == CHECKS[file].get("http_status", 202)
    if answer.status_code == 400:
        assert answer.json()["detail"]


@pytest.mark.parametrize("file", sorted(set(FILES) - REFUSED_AS_A_WHOLE))
def test_what_is_stored_is_exported_and_comes_in_again(file: str) -> None:
    send_all(file)
    selection = ExportSelection(system())
    out = "".join(jsonl_lines(selection))
    n_trials = Trial.objects.count()
    assert len("".join(csv_rows(selection)).splitlines()) > n_trials or n_trials == 0
    if n_trials == 0 or Trial.objects.filter(release__is_unversioned=True).exists():
        return
    digests = sorted(Trial.objects.values_list("digest", flat=True))
    copy = create_system("Copy", by=None)

    job = ingest_records(copy, out.encode(), release=None)

    assert ledger(job)[1] == n_trials
    assert sorted(Trial.objects.filter(task__system=copy).values_list("digest", flat=True)) == (
        digests
    )


def test_names_that_lead_out_of_an_archive_are_never_followed(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "a" / "b" / "c"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    settings.EVALSITE_UPLOADS = tmp_path / "a" / "uploads"

    code, document = send("archive-path-traversal--dotdot.zip")

    (file,) = document["files"]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in written] == [file["upload"].replace("-", "")]
    assert uploads_root() in written[0].parents
    assert (code, document["stored"], document["refused"]) == (1, 1, 2)
    assert {line["code"] for line in file["lines"]} == {"refused-member"}
    assert not Trial.objects.filter(task__task_id__contains="evil").exists()


def test_a_harness_error_with_a_pass_is_in_no_passing_group() -> None:
    send("error-status-lost--native-error-with-pass.jsonl")
    (task,) = passing_paths(system(), level=PathLevel.EXACT, messages=True)
    assert (task.n_trials, task.n_graded, task.groups) == (1, 0, ())


def test_harness_errors_widen_the_range() -> None:
    send("errored-trials-denominator--2pass-1fail-2error.jsonl")
    total = figures().total
    assert total.range is not None
    assert (total.range.low, total.range.high) == (Fraction(2, 5), Fraction(4, 5))
    assert total.rate == Fraction(2, 3)


def test_evidence_of_another_release_does_not_count() -> None:
    send("stale-or-mixed-results--two-versions.jsonl")
    total = figures("1.4.0").total
    assert (total.passed, total.run) == (3, 3)


def test_tasks_with_fewer_than_k_trials_have_no_pass_hat_k() -> None:
    send("pass-k-small-n--uneven.jsonl")
    found = figures()
    by_task = {t.task: pass_hat_k(t.counts.graded, t.counts.passed, 4) for t in found.tasks}
    assert by_task == {"loan-k4": 1, "loan-k2": None, "loan-k1z": None}
    assert found.pass_hat_k[3].n_tasks == 1
    assert set(found.pass_hat_k[3].left_out) == {"loan-k2", "loan-k1z"}


def test_unreadable_verdicts_are_errors_with_their_word_kept() -> None:
    send("judge-malformed-verdict--spellings.jsonl")
    values = Counter(Verdict.objects.values_list("value", flat=True))
    assert values == {"pass": 2, "error": 5}
    assert figures().total.passed == 0


def test_a_release_that_contradicts_the_record_refuses_it() -> None:
    code, document = send("stale-or-mixed-results--two-versions.jsonl", "--release", "1.4.0")
    assert (code, document["stored"], document["refused"]) == (1, 3, 1)


def test_a_cell_of_66_kilobytes_is_whole_and_no_formula() -> None:
    text = "=" + 'long cell, with "quotes"\n' * 2_640
    record = json.loads((FOLDER / "csv-formula--cells.jsonl").read_text().splitlines()[0])
    record["messages"] = [{"role": "assistant", "content": text}]
    copy = create_system("Copy", by=None)
    ingest_records(copy, [record], release=None)
    import csv

    rows = list(csv.reader(io.StringIO("".join(csv_rows(ExportSelection(copy))), newline="")))

    assert len(rows) == 2
    assert "'" + text in rows[1]
    assert len(rows[1]) == len(rows[0])


def test_a_bomb_answers_413_before_it_is_held(client: Client, cast: Cast) -> None:
    import resource

    cache.clear()
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    answer = client.post(
        "/api/v1/uploads",
        bomb,
        content_type="application/x-ndjson",
        HTTP_CONTENT_ENCODING="gzip",
        **header(cast.system, cast.engineer),
    )

    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    assert "Retry-After" not in answer
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024  # KiB


def test_a_trial_of_6000_messages_is_whole() -> None:
    messages: list[dict[str, Any]] = []
    for number in range(2_000):
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": "read_row", "arguments": json.dumps({"row": number})},
        }
        messages += [
            {"role": "user", "content": f"row {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "ok"},
        ]
    record = {"task_id": "t", "trial": 1, "messages": messages, "agent": {"version": "1"}}
    ingest_records(create_system("Many", by=None), [record], release=None)

    trial = Trial.objects.get()
    assert (trial.n_messages, trial.n_tool_calls) == (6_000, 2_000)
    assert set(UploadJob.objects.values_list("state", flat=True)) == {"done"}


# Contracts


@pytest.mark.parametrize("file", CONTRACTS)
def test_a_contract_as_it_lies_there_is_refused_with_places_and_nothing_is_run(file: str) -> None:
    (reading,) = read_contracts((FOLDER / file).read_bytes())

    assert reading.contract is None
    assert reading.findings
    assert all(finding.line > 0 for finding in reading.findings)
    assert all(finding.sentence.endswith((".", ":", "…")) for finding in reading.findings)
    assert not Path("/tmp/pwned_by_contract").exists()  # noqa: S108 - it names this very path


def test_tags_and_aliases_are_refused_at_their_lines() -> None:
    def refused(file: str) -> set[tuple[str, int]]:
        (reading,) = read_contracts((FOLDER / file).read_bytes())
        return {(finding.code, finding.line) for finding in reading.findings}

    assert ("tag", 5) in refused("contract-unsafe-yaml--python-tag.yaml")
    assert {("anchor", 3), ("alias", 4)} <= refused("contract-yaml-bomb--aliases.yaml")


_CONTRACT = """\
task: loan-rx
prohibited:
  - {{id: p1, harm: money, call: renew_loan, where: {}}}
  - {{id: ok, harm: money, call: renew_loan, where: args.days > 30}}
"""


@pytest.mark.parametrize(
    "expression",
    ["9**9**9 > 0", "(1).__class__.__bases__[0].__subclasses__()", '"a" * 10**10 == ""'],
    ids=["powers", "attributes", "repeated text"],
)
def test_an_expression_that_is_none_is_refused_when_the_contract_is_drafted(
    cast: Cast, expression: str
) -> None:
    stored(cast, "contract-regex-dos--nested-plus.2.jsonl")

    with pytest.raises(ContractFindingsError) as caught:
        draft_contracts(
            cast.system,
            _CONTRACT.format(json.dumps(expression)),
            by=cast.engineer,
            now=timezone.now(),
        )

    (finding,) = caught.value.findings
    assert (finding.code, finding.field, finding.line) == (
        "bad-expression",
        "prohibited[0].where",
        3,
    )


def stored(cast: Cast, file: str) -> None:
    """The trials of a case, in the system of the cast."""
    job = ingest_records(cast.system, (FOLDER / file).read_bytes(), release=None)
    assert job.n_stored == job.n_received > 0


def checked(cast: Cast) -> dict[tuple[str, str], str]:
    """What the contract checks say, by task and criterion."""
    rows = Verdict.objects.filter(
        trial__system=cast.system, grader_version__grader__name=CHECKS_GRADER
    ).exclude(criterion__name=EVIDENCE)
    return {
        (task, criterion): value
        for task, criterion, value in rows.values_list(
            "trial__task__task_id", "criterion__name", "value"
        )
    }


def test_a_pattern_that_would_never_end_comes_to_an_end_and_other_checks_go_on(
    client: Client, cast: Cast
) -> None:
    """The text of the case as an argument: 40 letters, and one that no pattern takes."""
    cache.clear()
    file = FOLDER / "contract-regex-dos--nested-plus.2.jsonl"
    record = json.loads(file.read_text())
    call = record["messages"][1]["tool_calls"][0]["function"]
    call["arguments"] = json.dumps({"ref": record["final_state"]["ref"]})
    ingest_records(cast.system, [record], release=None)

    text = """\
task: loan-rx
required:
  - {id: ref_format, call: renew_loan, where: 'args.ref.matches("^(a+)+$")'}
  - {id: alt, call: renew_loan, where: 'args.ref.matches("^(a|aa)+$")'}
  - {id: ends, call: renew_loan, where: 'args.ref.endsWith("!")'}
"""
    brought_into_effect(client, cast, [text])

    found = checked(cast)
    assert {found["loan-rx", "ref_format"], found["loan-rx", "alt"]} <= {"fail", "error"}
    assert found["loan-rx", "ends"] == "pass"


@pytest.mark.parametrize(
    ("file", "tasks"),
    [
        ("state-equality--floats.jsonl", "loan-sf1 loan-sf2 loan-sf3 loan-sf4"),
        ("state-equality--same-meaning.jsonl", "loan-se1 loan-se2 loan-se3 loan-se4"),
    ],
    ids=["floats", "same meaning"],
)
def test_states_are_equal_as_values_and_a_difference_names_its_path(
    client: Client, cast: Cast, file: str, tasks: str
) -> None:
    cache.clear()
    stored(cast, file)
    texts = [f"task: {task}\noutcome: recorded_expectation\n" for task in tasks.split()]

    brought_into_effect(client, cast, texts)

    found = checked(cast)
    matches = [found[task, "outcome"] == "pass" for task in tasks.split()]
    assert matches == CHECKS[file]["state_match"]
    rows = Verdict.objects.filter(trial__system=cast.system, criterion__name="outcome")
    told = rows.filter(grader_version__grader__name=CHECKS_GRADER).values_list("value", "rationale")
    assert all((value == "pass") != ("/" in rationale) for value, rationale in told)


def test_criteria_that_the_contract_does_not_have_are_kept_and_flagged(
    client: Client, cast: Cast
) -> None:
    cache.clear()
    stored(cast, "unknown-criterion--not-in-contract.jsonl")
    text = """\
task: loan-u1
outcome: recorded_expectation
external:
  - {id: loan_renewed, class: outcome, graders: [state_check]}
"""

    brought_into_effect(client, cast, [text])

    flags = Flag.objects.filter(code="unknown-criterion").order_by("criterion")
    assert [flag.criterion for flag in flags] == ["Loan_Renewed", "loan_renewd"]
    given = Verdict.objects.filter(grader_version__grader__name="state_check")
    assert given.count() == 3
    # Neither of the two failing ones is merged into the criterion that the contract has.
    assert Trial.objects.get().disposition.value == "pass"


@pytest.mark.parametrize(
    ("file", "unresolved", "n_passed", "flags"),
    [
        ("judge-contradiction--bad-evidence.jsonl", ["calibrate_judge"], 0, ["cited-step-missing"]),
        (
            "judge-malformed-verdict--verdict-absent.jsonl",
            ["calibrate_judge"],
            0,
            ["verdict-against-score"],
        ),
        ("judge-tie--panel-order.jsonl", ["calibrate_judge"] * 2, 0, []),
        ("judge-tie--same-judge-twice.jsonl", ["calibrate_judge"], 0, []),
        ("judge-timeout--rate-limited.jsonl", ["calibrate_judge"] * 4, 0, []),
        ("judge-timeout--timeout-as-error.jsonl", ["calibrate_judge"], 0, []),
        ("no-verdicts--all-unknown.jsonl", ["calibrate_judge"], 0, []),
        ("no-verdicts--empty-list.jsonl", ["clarify_contract"] * 2, 1, []),
    ],
    ids=lambda value: value.removesuffix(".jsonl") if isinstance(value, str) else "",
)
def test_what_nobody_decided_is_never_a_pass_and_waits_in_the_queue(
    cast: Cast, file: str, unresolved: list[str], n_passed: int, flags: list[str]
) -> None:
    stored(cast, file)

    dispositions = Counter(TrialDisposition.objects.values_list("value", flat=True))
    assert dispositions == Counter(unresolved=len(unresolved), **{"pass": n_passed})
    queue = Case.objects.filter(state="open").order_by("pk")
    assert [action for case in queue for action in case.next_actions] == unresolved
    assert list(Flag.objects.order_by("pk").values_list("code", flat=True)) == flags
    given = given_verdicts({trial.pk for trial in Trial.objects.all()})
    disputed = sum(bool(disputed_criteria(verdicts)) for verdicts in given.values())
    assert disputed == CHECKS[file].get("disputed", 0)
