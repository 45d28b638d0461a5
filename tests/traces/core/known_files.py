"""The files behind the known answers, read as plainly as can be, without the format readers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traces.core.canonical import nfc
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
)
from traces.core.values import Json

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "evalsite" / "sample"
DATA = ROOT / "tests" / "data"


@dataclass(frozen=True, slots=True)
class KnownTrial:
    task: str
    label: str
    reward: float | None
    trajectory: Trajectory

    @property
    def passed(self) -> bool:
        return self.reward is not None and abs(self.reward - 1) <= 1e-6


def load(path: Path) -> Any:
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def trajectory_of(messages: list[dict[str, Any]] | None) -> Trajectory:
    steps: list[TrajectoryCall | TrajectoryMessage] = []
    for number, message in enumerate(messages or [], start=1):
        if message.get("role") != "assistant":
            continue
        calls = message.get("tool_calls") or []
        if not calls:
            steps.append(TrajectoryMessage(number))
        for call in calls:
            function = call.get("function", call)
            arguments, form = _arguments_of(function["arguments"])
            steps.append(
                TrajectoryCall(
                    nfc(function["name"]), arguments, form, CallOutcome.COMMITTED, number
                )
            )
    return tuple(steps)


def _arguments_of(raw: Json) -> tuple[Json, ArgumentsForm]:
    if not isinstance(raw, str):
        return raw, ArgumentsForm.JSON
    try:
        return json.loads(raw or "{}"), ArgumentsForm.JSON
    except ValueError:
        return raw, ArgumentsForm.INVALID


def tau1_trials() -> Iterator[KnownTrial]:
    for record in load(SAMPLE / "tau_bench_airline" / "gpt-4o-airline.tasks00-24.json.gz"):
        yield KnownTrial(
            str(record["task_id"]),
            str(record["trial"]),
            record.get("reward"),
            trajectory_of(record.get("traj")),
        )


def tau2_trials(path: Path, label: str | None = None) -> Iterator[KnownTrial]:
    for record in load(path)["simulations"]:
        yield KnownTrial(
            str(record["task_id"]),
            str(record["trial"]) if label is None else label,
            (record.get("reward_info") or {}).get("reward"),
            trajectory_of(record.get("messages")),
        )


def airline_pool_trials() -> Iterator[KnownTrial]:
    for path in sorted((SAMPLE / "tau2_airline").glob("*.json.gz")):
        yield from tau2_trials(path, path.name.removesuffix(".json.gz"))


def telecom_trials() -> Iterator[KnownTrial]:
    yield from tau2_trials(
        DATA / "02_tau2_results" / "telecom_no-user_gpt-4.1_4trials_5tasks.json.gz"
    )
