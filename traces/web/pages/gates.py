"""A release's gate, what stands behind its checks, and the signatures on it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from evalsite.common.shell import Choice, Crumb, Figure, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Fact, Link, Notice, TrialRow

if TYPE_CHECKING:
    from django.forms import Form


@dataclass(frozen=True, slots=True)
class GateBar:
    """A figure held against its threshold, drawn. Places are percent of the width."""

    words: str  # all that is drawn, in words
    state: str  # pass | fail | unresolved | ""
    limit: str  # where the threshold stands
    low: str = ""  # of the range
    width: str = ""
    value: str = ""  # "": nothing was measured
    whisker_low: str = ""  # the interval that decides, or the one for display
    whisker_width: str = ""
    decides: bool = False  # the interval does
    from_words: str = ""  # what the left end stands for
    to_words: str = ""


@dataclass(frozen=True, slots=True)
class GateDetail:
    """One part of a check: a harm, a task, a family, a judge, a run."""

    label: str
    text: str
    result: Badge | None = None


@dataclass(frozen=True, slots=True)
class GateCheck:
    """A row of a gate: a threshold held against the evidence."""

    id: str  # unique on the page
    name: str
    threshold: str  # "≥ 95 %"
    measured: str
    counts: str  # "466 / 483 / 500"
    counts_words: str  # what they are counts of
    result: Badge
    decided_by: str  # "by the estimate"; "" where nothing can be chosen
    asks: str  # the threshold in a sentence
    sentence: str
    bar: GateBar | None = None
    settles: str = ""
    plan: Link | None = None
    details: tuple[GateDetail, ...] = ()
    n_more_details: int = 0
    trials: tuple[Link, ...] = ()
    evidence: Link | None = None
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class GateSection:
    """The checks of one tier."""

    id: str
    title: str  # "Tier payments"
    state: Badge
    sentence: str
    figures: str  # "50 tasks, 500 trials"
    thresholds: str  # which, since when, who set them
    thresholds_url: str
    checks: tuple[GateCheck, ...]


@dataclass(frozen=True, slots=True)
class GateTask:
    """Something to do before a release can be signed."""

    label: str
    note: str = ""
    link: Link | None = None


@dataclass(frozen=True, slots=True)
class GateChange:
    """One kind of change since the last signed release."""

    label: str
    text: str
    links: tuple[Link, ...] = ()
    n_more: int = 0
    state: str = ""


@dataclass(frozen=True, slots=True)
class GateSince:
    """What changed since the last signed release; `baseline` None: there is none."""

    sentence: str
    baseline: Link | None = None
    signature: Link | None = None
    changes: tuple[GateChange, ...] = ()
    link: Link | None = None


@dataclass(frozen=True, slots=True)
class GateRun:
    """A run of a release, and whether its gate counts it."""

    name: str
    href: str
    begun_at: datetime
    text: str  # "declared, 5 trials a task"
    state: str  # counts | left-out | production
    left_out_by: str = ""
    left_out_at: datetime | None = None
    reason: str = ""
    confirmed_by: str = ""
    confirmed_reason: str = ""
    leave_out: Link | None = None
    confirm_url: str = ""  # takes a POST
    why_not_confirm: str = ""
    take_in_url: str = ""  # takes a POST
    why_not: str = ""  # why the person may do none of it


@dataclass(frozen=True, slots=True)
class OtherGateCheck:
    """A check that comes out otherwise under the other thresholds or contracts."""

    tier: str
    name: str
    counting: Badge | None  # None: not asked for there
    other: Badge | None


@dataclass(frozen=True, slots=True)
class OtherGate:
    """The gate under other thresholds, tiers or contracts, beside the one that counts."""

    title: str
    sentence: str
    counting: Badge
    counting_words: str
    other: Badge
    other_words: str
    checks: tuple[OtherGateCheck, ...]
    form_url: str = ""  # takes a POST: an owner's re-evaluation
    why_not: str = ""
    n_same: int = 0


@dataclass(frozen=True, slots=True)
class SignChoice:
    """A meaning that may be signed, or why not."""

    label: str
    href: str  # the page to sign; "" when it may not be
    why_not: str
    is_primary: bool = False
    id: str = ""


@dataclass(frozen=True, slots=True)
class SignatureRow:
    """One signature as page and paper show it."""

    uuid: str
    href: str
    words: str  # "approves release 2.4.0"
    meaning: Badge
    printed_name: str
    role: str
    role_now: str  # "" where it is the same; else what the signer is by now
    signed_at: datetime
    signed_words: str  # to the second, in UTC
    digest: str
    intended_use: str
    scope: str
    expires_on: date | None
    reason: str
    next_action: str
    waived: str  # "Cost of a trial, of tier payments"
    key_id: str
    needed: str  # "the first of two signatures"; ""
    is_newest: bool
    attestation_url: str
    voided_by: str = ""
    voided_words: str = ""
    void_reason: str = ""
    void_url: str = ""  # takes a POST; "" when the person may not
    why_not_void: str = ""


@dataclass(frozen=True, slots=True)
class SigningPart:
    """What the signatures on a release come to, and what the person may do."""

    state: Badge
    marks: tuple[Badge, ...]
    sentence: str
    choices: tuple[SignChoice, ...]
    why_not: str  # the separation rule; "" none
    signatures: tuple[SignatureRow, ...]  # of the newest decision
    n_older: int
    history_url: str
    differences: tuple[str, ...]  # what changed since signing
    is_being_compared: bool = False


@dataclass(frozen=True, slots=True)
class GateWork:
    """How far the computing of a gate is."""

    sentence: str
    level: str  # info | error
    poll_url: str  # "": nothing is under way
    refresh_url: str = ""  # takes a POST; "" when the person may not, or need not
    show_url: str = ""  # the page with the gate that is there by now


@dataclass(frozen=True, slots=True)
class GateHead:
    """What every page of a release's gate shows at its head."""

    crumbs: tuple[Crumb, ...]
    release: str
    title: str  # "Release 2.4.0 is blocked"
    sentence: str
    tabs: tuple[Choice, ...]
    state: Badge
    sign_off: Badge
    marks: tuple[Badge, ...]


@dataclass(frozen=True, slots=True)
class GatePage:
    """The gate of a release."""

    shell: Shell
    head: GateHead
    openings: tuple[tuple[str, Badge], ...]  # checks not met or not told, with their place
    rules: tuple[str, ...]  # which thresholds, and who cannot change them
    work: GateWork | None
    notices: tuple[Notice, ...]
    digest: str
    computed_at: datetime | None
    sections: tuple[GateSection, ...]
    todo: tuple[GateTask, ...]
    todo_words: str  # where there is nothing to do
    signing: SigningPart
    since: GateSince | None
    runs: tuple[GateRun, ...]
    runs_words: str
    report_url: str
    json_url: str
    attestation: Link | None
    other: OtherGate | None = None
    empty: Empty | None = None
    figures: str = ""  # "2 runs, 500 trials, 50 tasks"
    refused_url: str = ""  # the form that was refused, with the reason that was typed in it
    refused_reason: str = ""


@dataclass(frozen=True, slots=True)
class GateReportPage:
    """A gate with its signatures, made for paper."""

    shell: Shell
    head: GateHead
    system: str
    rules: tuple[str, ...]
    facts: tuple[Fact, ...]
    notices: tuple[Notice, ...]
    sections: tuple[GateSection, ...]
    signatures: tuple[SignatureRow, ...]
    runs: tuple[GateRun, ...]
    other: OtherGate | None
    changed: str  # "3 values changed since they were first entered"
    changes: tuple[Fact, ...]
    printed_by: str
    printed_at: datetime
    back_url: str


@dataclass(frozen=True, slots=True)
class GateCheckPage:
    """The evidence behind one check."""

    shell: Shell
    head: GateHead
    check: GateCheck
    section: GateSection
    thresholds: Link
    rows: tuple[TrialRow, ...]
    rows_words: str
    lists: tuple[Link, ...]  # whole lists of trials, over all tiers
    others: tuple[Link, ...]  # the other checks of the tier


@dataclass(frozen=True, slots=True)
class SignField:
    """A choice of what one signs."""

    value: str
    label: str
    help: str
    href: str
    is_current: bool
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class SignPage:
    """What somebody signs, and the form that signs it."""

    shell: Shell
    head: GateHead
    statement: str  # "I approve release 2.4.0 …"
    rules: tuple[str, ...]
    digest: str
    facts: tuple[Fact, ...]
    checks: tuple[tuple[str, tuple[GateCheck, ...]], ...]
    meanings: tuple[SignField, ...]
    form: Form | None  # None: the person may not sign, or nothing is to be signed
    why_not: str
    waived: str  # the check that the waiver names
    joins: str  # that the words are those of the first owner
    action: str
    submit: str
    cancel_url: str
    refusal: str = ""
    differences: tuple[str, ...] = ()
    digest_before: str = ""  # that the form was made for, where it changed
    kept: tuple[Fact, ...] = ()  # what was typed for what cannot be signed any more


@dataclass(frozen=True, slots=True)
class SignaturePage:
    """One signature."""

    shell: Shell
    head: GateHead
    signature: SignatureRow
    states: tuple[Badge, ...]
    differences: tuple[str, ...]
    facts: tuple[Fact, ...]
    verify: str  # the command
    keys_url: str
    void_error: str = ""
    void_text: str = ""


@dataclass(frozen=True, slots=True)
class SignatureListPage:
    """All signatures on a release, void ones too."""

    shell: Shell
    head: GateHead
    rows: tuple[SignatureRow, ...]
    empty: Empty | None


@dataclass(frozen=True, slots=True)
class LeaveOutPage:
    """The form that leaves a run out of its release's gate."""

    shell: Shell
    head: GateHead
    run: str
    run_url: str
    facts: tuple[Fact, ...]
    form: Form
    action: str
    cancel_url: str


@dataclass(frozen=True, slots=True)
class AlertRow:
    """A prohibited action that a gate does not allow."""

    id: str
    harm: str
    task: Link
    trial: Link
    release: Link
    gate_url: str
    tier: str
    raised_at: datetime
    seen_by: str = ""
    seen_at: datetime | None = None
    note: str = ""
    seen_url: str = ""  # takes a POST; "" when the person may not, or it is noted
    error: str = ""
    typed: str = ""  # the note that was refused


@dataclass(frozen=True, slots=True)
class AlertListPage:
    """The alerts of a system, newest first."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    sentence: str
    views: tuple[Choice, ...]
    rows: tuple[AlertRow, ...]
    why_not: str  # why the person notes none
    pager: Pager
    empty: Empty | None
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class PublicKeyRow:
    """A public key that signatures are verified with."""

    id: str
    pem: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class SigningKeysPage:
    """The public keys of this site."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    rows: tuple[PublicKeyRow, ...]
    command: str
    empty: Empty | None
