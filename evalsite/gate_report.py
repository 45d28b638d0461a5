"""A release's gate with its signatures, as the command and the API say it: one function for both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum

from evalsite.gates import ComputedGate, compute_gate, stored_document
from reviews.core.gate.model import Check, Section
from reviews.core.gate.signing import SignOffStanding, sign_off_state
from reviews.core.gate.states import CheckResult, GateState, Mark, SignOffState
from reviews.core.gate.threshold_words import check_name, threshold_text
from reviews.models import SignOff
from reviews.selectors.gate_basis import iso
from reviews.selectors.sign_offs import sign_offs_of, signatures_of, void_of
from traces.core.text_marks import marked_text
from traces.core.values import JsonObject
from traces.models import Release

LONGEST_NAME = 200  # characters of a name that a table shows


class Required(StrEnum):
    """What a release has to be for the command to end with 0."""

    READY = "ready"
    SIGNED = "signed"


class ExitStatus(IntEnum):
    """How the command ends."""

    AS_REQUIRED = 0
    TOOL_ERROR = 1
    USAGE = 2
    BLOCKED = 3
    WAITING = 4
    UNSIGNED = 5


@dataclass(frozen=True, slots=True)
class GateReport:
    """A gate computed now, and what the signatures come to on exactly that evidence."""

    release: Release
    computed: ComputedGate
    standing: SignOffStanding
    sign_offs: tuple[SignOff, ...]
    at: datetime

    @property
    def state(self) -> GateState:
        """The gate's."""
        return self.computed.gate.state


def gate_report(release: Release, *, now: datetime) -> GateReport:
    """The gate of a release, computed now, with its signatures."""
    computed = compute_gate(release.pk, now=now)
    rows = tuple(sign_offs_of(release.pk))
    standing = sign_off_state(signatures_of(rows), digest=computed.digest, today=now.date())
    return GateReport(release, computed, standing, rows, now)


def exit_status(report: GateReport, required: Required) -> ExitStatus:
    """How the command ends: a valid signature is one over this evidence, within its date."""
    if required is Required.SIGNED and report.standing.is_valid:
        return ExitStatus.AS_REQUIRED
    match report.state:
        case GateState.BLOCKED:
            return ExitStatus.BLOCKED
        case GateState.WAITING:
            return ExitStatus.WAITING
        case GateState.READY:
            return ExitStatus.UNSIGNED if required is Required.SIGNED else ExitStatus.AS_REQUIRED


_SIGNED = {
    SignOffState.NONE: "Nobody has signed it.",
    SignOffState.PARTLY: "One of two owners has signed it.",
    SignOffState.APPROVED: "It is approved.",
    SignOffState.WAIVER: "It is approved with a waiver.",
    SignOffState.REJECTED: "It is rejected.",
    SignOffState.VOID: "Its signature was declared void.",
}
_MARKED = {
    Mark.STALE: "The signature is stale: the evidence is another by now.",
    Mark.EXPIRED: "The signature has expired.",
}


def signed_sentence(standing: SignOffStanding) -> str:
    """What the signatures come to."""
    return " ".join([_SIGNED[standing.state], *(_MARKED[mark] for mark in standing.marks)])


def report_document(report: GateReport) -> JsonObject:
    """The gate as JSON: what is stored of it, with its release and signatures."""
    return {
        "system": report.release.system.slug,
        "release": report.release.name,
        "release_uuid": str(report.release.uuid),
        "computed_at": iso(report.at),
        **stored_document(report.computed),
        "sign_off": {
            "state": report.standing.state.value,
            "marks": [mark.value for mark in report.standing.marks],
            "is_valid": report.standing.is_valid,
            "sentence": signed_sentence(report.standing),
            "signatures": [_signature(row) for row in report.sign_offs],
        },
    }


def _signature(row: SignOff) -> JsonObject:
    void = void_of(row)
    return {
        "uuid": str(row.uuid),
        "meaning": row.meaning,
        "name": row.printed_name,
        "role": row.role,
        "signed_at": iso(row.signed_at),
        "digest": row.manifest.digest,
        "intended_use": row.intended_use,
        "scope": row.scope,
        "expires_on": row.expires_on.isoformat() if row.expires_on else None,
        "reason": row.reason,
        "next_action": row.next_action,
        "waived_tier": row.waived_tier,
        "waived_check": row.waived_check,
        "void": None
        if void is None
        else {
            "by": void.by.printed_name,
            "at": iso(void.voided_at),
            "reason": void.reason,
        },
    }


RESULTS = {
    CheckResult.MET: "met",
    CheckResult.NOT_MET: "not met",
    CheckResult.CANNOT_TELL: "cannot tell",
    CheckResult.DOES_NOT_APPLY: "does not apply",
}
STATES = {
    GateState.BLOCKED: "blocked",
    GateState.WAITING: "waiting for evidence",
    GateState.READY: "ready",
}


def report_lines(report: GateReport) -> Iterator[str]:
    """The gate as text: a line a check."""
    gate, other = report.computed.gate, report.computed.other
    yield _shown(gate.sentence)
    for section in gate.sections:
        yield ""
        yield f"{_shown(_tier_name(section))}: {STATES[section.state]}{_thresholds(section)}"
        for check in section.checks:
            name = check_name(check.threshold)
            yield f"  {RESULTS[check.result]:<15}{name}, {threshold_text(check.threshold)}"
            yield f"  {'':<15}{_shown(_said(check))}"
        if not section.checks:
            yield f"  {_shown(section.sentence)}"
    yield ""
    if other is not None:
        yield f"{_shown(other.sentence)} It would be {STATES[other.gate.state]}."
    yield signed_sentence(report.standing)
    yield f"Evidence {report.computed.digest}"


def report_markdown(report: GateReport) -> str:
    """The gate as Markdown, ready for a comment: whatever stands in names is shown as text."""
    gate, other = report.computed.gate, report.computed.other
    lines = [
        f"### Gate of {_md(report.release.label)}: {STATES[gate.state]}",
        "",
        _md(gate.sentence),
        "",
        "| Tier | Check | Threshold | Result | What it rests on |",
        "|---|---|---|---|---|",
    ]
    for section in gate.sections:
        tier = _md(_tier_name(section))
        if not section.checks:
            lines.append(f"| {tier} | | | {STATES[section.state]} | {_md(section.sentence)} |")
        lines += [f"| {tier} | {_row(check)} |" for check in section.checks]
    lines += ["", f"{signed_sentence(report.standing)} Evidence `{report.computed.digest}`."]
    if other is not None:
        lines += ["", f"{_md(other.sentence)} It would be {STATES[other.gate.state]}."]
    return "\n".join(lines)


def _row(check: Check) -> str:
    cells: Sequence[str] = (
        _md(check_name(check.threshold)),
        _md(threshold_text(check.threshold)),
        f"**{RESULTS[check.result]}**",
        _md(_said(check)),
    )
    return " | ".join(cells)


def _tier_name(section: Section) -> str:
    return f"tier {section.tier}" if section.tier else "no tier"


def _thresholds(section: Section) -> str:
    found = section.threshold_set
    return f", thresholds version {found.number} by {_shown(found.by)}" if found else ""


def _said(check: Check) -> str:
    return f"{check.sentence} {check.settles}".strip()


def _shown(text: str) -> str:
    return marked_text(" ".join(text.split()))


_MARKDOWN = re.compile(r"[&<>|`*_~\[\]()\\#@!:/$^{}=+\-]")


def _md(text: str) -> str:
    """A text that no Markdown reader takes for anything else: no link, mention, table or HTML."""
    short = _shown(text)
    if len(short) > 2_000:
        short = f"{short[:2_000]}…"
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", short)
