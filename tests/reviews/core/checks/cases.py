"""Small contracts and trials for the tests of checks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from reviews.core.checks import CheckResult, TrialEvidence, checks_of, planted_evidence
from traces.core.contracts.model import Contract
from traces.core.contracts.reading import read_contracts


def contract(text: str, *, head: str = "task: t") -> Contract:
    """The contract of a text; `head` stands before it."""
    reading = read_contracts(f"{head}\n{text}")[0]
    assert reading.contract is not None, reading.findings
    return reading.contract


@dataclass
class Talk:
    """A transcript that grows by entries."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    n_calls: int = 0

    def user(self, text: str) -> Talk:
        self.messages.append({"role": "user", "content": text})
        return self

    def agent(self, text: str) -> Talk:
        self.messages.append({"role": "assistant", "content": text})
        return self

    def ask(self, *calls: tuple[str, Any]) -> Talk:
        """One message with calls, whose results are still to come."""
        made = []
        for name, arguments in calls:
            self.n_calls += 1
            made.append({"id": f"c{self.n_calls}", "name": name, "arguments": arguments})
        self.messages.append({"role": "assistant", "tool_calls": made})
        return self

    def answer(self, number: int, result: Any, *, is_error: bool = False) -> Talk:
        """The result of the n-th call."""
        content = result if isinstance(result, str) else json.dumps(result)
        flag = {"is_error": True} if is_error else {}
        message = {"role": "tool", "tool_call_id": f"c{number}", "content": content}
        self.messages.append({**message, **flag})
        return self

    def call(self, name: str, arguments: Any, result: Any, *, is_error: bool = False) -> Talk:
        """A call and its result, in two steps."""
        self.ask((name, arguments))
        return self.answer(self.n_calls, result, is_error=is_error)

    def evidence(self, **record: Any) -> TrialEvidence:
        return planted_evidence({"messages": self.messages, **record})


def said(contract_: Contract, evidence: TrialEvidence) -> dict[str, CheckResult]:
    """The results by criterion."""
    return {result.criterion: result for result in checks_of(contract_, evidence).results}


def words(contract_: Contract, evidence: TrialEvidence) -> dict[str, str]:
    """The verdict words by criterion."""
    return {name: result.value.value for name, result in said(contract_, evidence).items()}


def one(text: str, evidence: TrialEvidence, *, head: str = "task: t") -> CheckResult:
    """The result of the only check of a contract."""
    (result,) = checks_of(contract(text, head=head), evidence).results
    return result
