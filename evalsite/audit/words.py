"""Acts and objects of the audit log in words, and where the objects have pages."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from evalsite.models import AuditEvent
from traces.web.addresses import Addresses
from traces.web.asking import uuid_of

ACTS: Mapping[str, str] = {
    "system.made": "made the system",
    "system.tier_set": "set the system's risk tier",
    "system.tasks_moved": "moved tasks to another tier",
    "member.added": "made somebody a member",
    "member.role_changed": "changed somebody's role",
    "member.removed": "removed a member",
    "invitation.made": "made an invitation",
    "invitation.revoked": "took an invitation back",
    "invitation.taken": "took an invitation up",
    "api_key.made": "made an API key",
    "api_key.revoked": "revoked an API key",
    "account.password_changed": "changed their password",
    "upload.accepted": "uploaded evidence",
    "run.declared": "declared a run",
    "run.left_out": "left a run out",
    "run.exclusion_confirmed": "confirmed that a run is left out",
    "run.taken_in": "took a run back in",
    "gate.reevaluated": "re-evaluated a gate",
    "alert.seen": "noted an alert",
    "evidence.added": "added evidence to a trial",
    "task.made_from_trial": "made a task of a trial",
    "task.split_changed": "changed a split",
    "task.exposed": "noted that a held-out task was used",
    "task.tier_moved": "moved a task to another tier",
    "rules.proposed": "proposed rules",
    "rules.approved": "approved rules",
    "rules.rejected": "rejected rules",
    "rules.withdrawn": "withdrew proposed rules",
    "rules.work_stopped": "stopped the work on rules",
    "rules.work_restarted": "took the work on rules up again",
    "contract.proposed": "proposed contracts",
    "contract.approved": "approved contracts",
    "contract.rejected": "rejected contracts",
    "contract.withdrawn": "withdrew proposed contracts",
    "regrade.asked": "asked for a regrade",
    "regrade.stopped": "stopped a regrade",
    "regrade.restarted": "took a regrade up again",
    "rubric.written": "wrote a rubric",
    "rubric.request_closed": "closed a request for a clearer rubric",
    "verdict.given": "gave a verdict",
    "verdict.corrected": "corrected a verdict of their own",
    "verdict.vouched": "vouched for verdicts",
    "verdicts.revealed": "looked at what others say",
    "adjudication.made": "decided a dispute",
    "adjudication.corrected": "corrected a decision on a dispute",
    "dispute.skipped": "left a dispute to others",
    "label.given": "gave a blind label",
    "calibration_set.made": "made a calibration set",
    "calibration_set.imported": "brought labels in",
    "calibration_set.item_withdrawn": "took an item out of a calibration set",
    "calibration_set.closed": "closed a calibration set",
    "calibration_set.vouched": "vouched for labels",
    "calibration.read": "read calibrations anew",
    "probes.made": "made probes",
    "judge_run.asked": "asked a judge",
    "judge_run.stopped": "stopped a judge run",
    "judge_run.restarted": "took a judge run up again",
    "mark.made": "marked a check",
    "mark.withdrawn": "withdrew a mark",
    "flag.raised": "flagged a trial",
    "flag.closed": "closed a flag",
    "accepted_path.accepted": "accepted a path",
    "accepted_path.withdrawn": "withdrew an accepted path",
    "case.assigned": "assigned a case",
    "case.due_set": "set a due date",
    "case.commented": "commented on a case",
    "case.set_aside": "set a case aside",
    "case.taken_up": "took a case up",
    "case.rerun_asked": "asked for a rerun",
    "tier.made": "made a risk tier",
    "tier.retired": "retired a risk tier",
    "threshold_set.made": "set thresholds",
    "sign_off.made": "signed a release",
    "sign_off.refused": "was refused a signature",
    "sign_off.voided": "declared a signature void",
}
"""What people did, after their name. An act that is not here is shown by its own name."""

KINDS: Mapping[str, str] = {
    "accepted_path.": "Accepted paths",
    "adjudication.": "Adjudications",
    "alert.": "Alerts",
    "api_key.": "API keys",
    "calibration.": "Calibrations",
    "calibration_set.": "Calibration sets",
    "case.": "Cases",
    "contract.": "Contracts",
    "dispute.": "Disputes",
    "evidence.": "Added evidence",
    "flag.": "Flags",
    "gate.": "Gates",
    "invitation.": "Invitations",
    "judge_run.": "Judge runs",
    "label.": "Labels",
    "mark.": "Marks",
    "member.": "Members",
    "probes.": "Probes",
    "regrade.": "Regrades",
    "rubric.": "Rubrics",
    "rules.": "Rules",
    "run.": "Runs",
    "sign_off.": "Sign-offs",
    "system.": "The system",
    "task.": "Tasks",
    "threshold_set.": "Thresholds",
    "tier.": "Risk tiers",
    "upload.": "Uploads",
    "verdict.": "Verdicts",
    "verdicts.": "Revelations",
}
"""Acts by their kind, for the filter."""

SOURCES: Mapping[str, str] = {
    "page": "page",
    "api": "API",
    "command": "command",
    "worker": "worker",
    "sample": "sample data",
}


def act_words(act: str) -> str:
    """What somebody did, to stand after their name."""
    return ACTS.get(act) or act.replace(".", ": ").replace("_", " ")


def kind_words(kind: str) -> str:
    """The kind of an object."""
    return kind.replace("_", " ")


def source_words(source: str) -> str:
    """By which way somebody acted."""
    kind, _, command = source.partition(" ")
    words = SOURCES.get(kind, kind)
    return f"{words} {command}" if command else words


def object_href(event: AuditEvent, at: Addresses) -> str:
    """The page of an event's object; "" where it has none."""
    if identity := uuid_of(event.object_id):
        return _of_uuid(event.object_kind, identity, at)
    if event.object_id.isascii() and event.object_id.isdigit() and len(event.object_id) < 10:
        return _of_number(event.object_kind, int(event.object_id), at)
    return ""


def _of_uuid(kind: str, identity: uuid.UUID, at: Addresses) -> str:
    match kind:
        case "trial":
            return at.trial(identity)
        case "task":
            return at.task(identity)
        case "release":
            return at.gate(identity)
        case "run":
            return at.run(identity)
        case "upload":
            return at.upload(identity)
        case "flag":
            return at.flag(identity)
        case "case":
            return at.case(identity)
        case "dispute":
            return at.dispute(identity)
        case "tier":
            return at.tier(identity)
        case "person":
            return at.members
        case "api_key":
            return at.api_keys
        case _:
            return ""


def _of_number(kind: str, number: int, at: Addresses) -> str:
    match kind:
        case "rules":
            return at.rules_version(number)
        case "contract_proposal":
            return at.contract_proposal(number)
        case "regrade":
            return at.regrade(number)
        case "calibration_set":
            return at.calibration_set(number)
        case "judge_run":
            return at.judge_run(number)
        case "probe_batch":
            return at.probe_batch(number)
        case "rubric":
            return at.rubric(number)
        case "cases":
            return at.cases
        case _:
            return ""
