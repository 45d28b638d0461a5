"""Public data through the whole way in: counts, paths and figures against the known answers."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evalsite import sample_loader
from reviews.models import Verdict
from traces.models import TrialDisposition

pytestmark = pytest.mark.django_db

DATA = Path(__file__).resolve().parents[1] / "data"
POOL = sample_loader.FOLDER / "tau2_airline"
TAU1 = sample_loader.FOLDER / "tau_bench_airline" / "gpt-4o-airline.tasks00-24.json.gz"
TELECOM = DATA / "02_tau2_results" / "telecom_no-user_gpt-4.1_4trials_5tasks.json.gz"
AGENTS = (
    "azure-gpt-4o",
    "button_claude-opus-4-6",
    "ironshell_gpt-5.4",
    "qwen2.5-7b",
    "toolorchestra_gpt-5",
)
LEVELS = (
    ("tool_set", "tool_set", "--no-messages"),
    ("name_sequence", "sequence", "--no-messages"),
    ("exact", "exact", "--no-messages"),
    ("exact_msg", "exact", None),
)


def printed(*words: str) -> Any:
    out = StringIO()
    call_command(*words, "--json", stdout=out)
    return json.loads(out.getvalue())


def expected(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def check(system: str, answers: Any, *, label: str = "{}") -> None:
    for theirs, level, flag in LEVELS:
        got = printed("paths", "--system", system, "--level", level, *([flag] if flag else []))
        assert got == {
            "level": level,
            "messages": flag is None,
            "tasks": {
                task: {
                    "n_trials": one["n_trials"],
                    "n_graded": one["n_graded"],
                    "n_pass": one["n_pass"],
                    "groups": [
                        [label.format(trial) for trial in group] for group in one["groups"][theirs]
                    ],
                }
                for task, one in answers["tasks"].items()
            },
        }, level
    figures = printed("figures", "--system", system)
    for name in ("n_tasks", "n_trials", "n_graded", "n_pass"):
        assert figures[name] == answers[name], name
    for name in ("pass_hat_k", "pass_at_k"):
        assert figures[name] == pytest.approx(answers[name], abs=1e-6), name


def test_tau_bench_four_trials_a_task() -> None:
    call_command("ingest", str(TAU1), system="t1", release="gpt-4o", stdout=StringIO())
    check("t1", expected("expected_tau1_gpt-4o-airline_tasks00-24.json"))


def test_tau2_telecom_four_trials_a_task() -> None:
    call_command("ingest", str(TELECOM), system="t2", release="gpt-4.1", stdout=StringIO())
    check("t2", expected("expected_tau2_telecom_no-user_4trials.json"))


def test_tau2_airline_five_releases() -> None:
    for agent in AGENTS:
        file = POOL / f"{agent}.json.gz"
        call_command("ingest", str(file), system="pool", release=agent, stdout=StringIO())
    answers = expected("expected_tau2_airline_pool_5agents.json")
    check("pool", answers, label="{}:0")

    named = [word for agent in AGENTS for word in ("--release", agent)]
    assert printed("figures", "--system", "pool", *named) == printed("figures", "--system", "pool")
    one = printed("paths", "--system", "pool", "--release", AGENTS[0], "--level", "exact")
    passing = {task for task, row in one["tasks"].items() if row["groups"]}
    assert all(row["groups"] in ([], [["0"]]) for row in one["tasks"].values())
    assert passing == {
        task for task, row in answers["tasks"].items() if AGENTS[0] in row["passing"]
    }
    two = printed("figures", "--system", "pool", *named[:4])
    assert two["n_trials"] == 100


def test_four_judges_beside_the_code_check() -> None:
    sample_loader.load_sample(lambda _: None)
    answers = expected("expected_judges_tau2_airline.json")

    rows = Verdict.objects.filter(
        trial__release__name="azure-gpt-4o", criterion__name="outcome"
    ).values_list(
        "trial__task__task_id",
        "grader_version__grader__kind",
        "grader_version__grader__name",
        "value",
    )
    columns = answers["matrix_columns"]
    found: dict[str, list[str]] = {}
    for task, kind, grader, value in rows:
        name = "code" if kind == "code" else next(c for c in columns[1:] if c in grader)
        row = found.setdefault(task, [""] * len(columns))
        assert row[columns.index(name)] == ""
        row[columns.index(name)] = value

    # Five words that the upstream viewer did not know stand in our table (docs/formats.md).
    assert found == {
        task: ["pass" if word == "unrecognised" else word for word in row]
        for task, row in answers["matrix"].items()
    }
    judged = {task: set(row[1:]) for task, row in found.items()}
    split = {task for task, words in judged.items() if len(words) > 1}
    missed = {
        task for task, words in judged.items() if words == {"pass"} and found[task][0] == "fail"
    }
    assert split == set(answers["split_items"])
    assert missed == set(answers["unanimous_pass_but_code_fail"])
    dispositions = TrialDisposition.objects.filter(trial__release__name="azure-gpt-4o")
    assert dispositions.filter(value="pass").count() == answers["code_pass"]
