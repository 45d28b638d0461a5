"""Rules from a change to the work that brings them in force."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
from django.db import DatabaseError, transaction

from tests.support.cast import Cast, person
from tests.support.evidence import ingest, record
from tests.support.rules import NOW, approved, drafted, proposed
from traces.core.canonical import canonical_text
from traces.core.rule_changes import RuleChange, RulePlace, change_document
from traces.core.rule_documents import rule_set_document
from traces.core.rules import Alias, ArgumentRule, Arithmetic, Default, RoundTo, RuleSet
from traces.core.trajectory import ToolKind
from traces.models import (
    Role,
    RulesDecision,
    RulesJob,
    RulesOutcome,
    RulesPreview,
    RulesSuggestions,
    RulesVersion,
    WorkState,
)
from traces.permissions import rules as permissions
from traces.selectors.rules import newest_approved, rules_in
from traces.services.people import set_member
from traces.services.rules import (
    LONGEST_REASON,
    RulesError,
    ask_suggestions,
    decide_rules,
    preview_again,
    propose_rules,
    restart_work,
    start_preview,
    stop_work,
    withdraw_rules,
)

pytestmark = pytest.mark.django_db

RULE = ArgumentRule("calculate", "expression", Arithmetic(), "one sum", "ada")
ADD = RuleChange(put=(RULE,))
OTHER = RuleChange(kinds=(("get_order", ToolKind.READ),))


def test_a_preview_is_a_draft_of_the_change_on_the_newest_approved_version(cast: Cast) -> None:
    preview = start_preview(cast.system, ADD, by=cast.engineer, now=NOW)

    preview.refresh_from_db()
    assert preview.base == cast.system.shown_rules
    assert preview.change == change_document(ADD)
    assert preview.document == rule_set_document(RuleSet((RULE,)))
    assert (preview.by, preview.state, preview.asked_at, preview.touched_at) == (
        cast.engineer,
        WorkState.WAITING.value,
        NOW,
        NOW,
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(RuleChange(), "This changes nothing: the rules say so already.", id="nothing"),
        pytest.param(
            RuleChange(drop=(RulePlace("calculate", "expression"),)),
            "There is no rule on calculate.expression to drop.",
            id="drop-unknown",
        ),
        pytest.param(
            RuleChange(put=(replace(RULE, reason=""),)),
            'A rule needs a text "reason".',
            id="no-reason",
        ),
        pytest.param(
            RuleChange(put=(replace(RULE, terms=RoundTo(Decimal("1e-40"))),)),
            "The step is a number from 1E-12 to 1E+12, such as 0.01.",
            id="bad-step",
        ),
        pytest.param(
            RuleChange(put=(replace(RULE, terms=Default("1.5e-400")),)),
            "A number in this rule has more digits than can be kept.",
            id="smaller-than-any-float",
        ),
        pytest.param(
            RuleChange(put=(replace(RULE, terms=Default("1e5000")),)),
            "A number in this rule has more digits than can be kept.",
            id="larger-than-any-float",
        ),
        pytest.param(
            RuleChange(put=(replace(RULE, terms=Default("0.12345678901234567890123")),)),
            "A number in this rule has more digits than can be kept.",
            id="many-digits",
        ),
        pytest.param(
            RuleChange(put=(replace(RULE, terms=Alias((('"a\\u0000"', '"b"'),))),)),
            "A rule holds no NUL and no half of a character pair.",
            id="nul-in-value",
        ),
        pytest.param(
            RuleChange(put=(replace(RULE, reason="x" * 4_001),)),
            "A reason has at most 4,000 characters.",
            id="long-reason",
        ),
        pytest.param(
            RuleChange(put=(replace(RULE, tool="x" * 70_000),)),
            "A rule has at most 64,000 characters, values included.",
            id="long-rule",
        ),
        pytest.param(
            RuleChange(kinds=(("half \ud800", ToolKind.READ),)),
            "A rule holds no NUL and no half of a character pair.",
            id="half-a-pair-in-name",
        ),
    ],
)
def test_a_change_that_cannot_be_kept_is_refused_in_a_sentence(
    cast: Cast, change: RuleChange, sentence: str
) -> None:
    with pytest.raises(RulesError) as refused:
        start_preview(cast.system, change, by=cast.engineer, now=NOW)
    assert str(refused.value) == sentence
    assert not RulesPreview.objects.exists()


def test_values_of_a_rule_come_back_as_they_went_in(cast: Cast) -> None:
    values = [0.1, 1.5e-7, 12345678901234567890123, Decimal("1e400"), {"a": [None, True, "ä"]}]
    terms = Alias((tuple(map(canonical_text, values)),))
    change = RuleChange(put=(replace(RULE, terms=terms),))

    preview = start_preview(cast.system, change, by=cast.engineer, now=NOW)

    version = RulesVersion(document=RulesPreview.objects.get(pk=preview.pk).document)
    assert rules_in(version).rules[0].terms == terms


def test_a_proposal_is_a_version_with_its_change_and_base(cast: Cast) -> None:
    preview = drafted(cast, ADD)

    version = propose_rules(preview, reason="  a sum \x00 ", by=cast.engineer, now=NOW)

    version.refresh_from_db()
    assert (version.number, version.based_on, version.reason) == (
        2,
        cast.system.shown_rules,
        "a sum \u2400",
    )
    assert (version.document, version.change) == (preview.document, preview.change)
    assert version.created_by == cast.engineer
    assert version.preview == preview
    assert newest_approved(cast.system).number == 1
    assert not RulesJob.objects.exists()


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        pytest.param(" \n", "Say why, in a sentence.", id="none"),
        pytest.param(
            "x" * (LONGEST_REASON + 1), "A reason has at most 4,000 characters.", id="too-long"
        ),
    ],
)
def test_an_act_needs_a_reason(cast: Cast, reason: str, sentence: str) -> None:
    version = proposed(cast, ADD)
    preview = drafted(cast, ADD)
    acts: list[Callable[[], object]] = [
        lambda: propose_rules(preview, reason=reason, by=cast.engineer, now=NOW),
        lambda: withdraw_rules(version, reason=reason, by=cast.engineer, now=NOW),
        lambda: decide_rules(
            version, outcome=RulesOutcome.REJECTED, reason=reason, by=cast.owner, now=NOW
        ),
    ]
    for act in acts:
        with pytest.raises(RulesError, match=sentence):
            act()
    assert not RulesDecision.objects.exists()


def test_an_approval_asks_for_the_work_and_leaves_the_pages_alone(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    version = proposed(cast, ADD)
    caplog.set_level(logging.INFO, "evalsite.rules")

    decision = decide_rules(
        version, outcome=RulesOutcome.APPROVED, reason="agreed", by=cast.owner, now=NOW
    )

    job = RulesJob.objects.get(rules=version)
    assert (decision.outcome, decision.by, decision.decided_at) == ("approved", cast.owner, NOW)
    assert (job.state, job.after, job.asked_at) == (WorkState.WAITING.value, 0, NOW)
    cast.system.refresh_from_db()
    assert cast.system.shown_rules == version.based_on
    assert newest_approved(cast.system) == version
    line = caplog.records[-1]
    assert (line.getMessage(), line.system, line.user, line.rules) == (
        "rules approved",
        "airline",
        cast.owner.pk,
        2,
    )


def test_a_rejected_or_withdrawn_version_changes_nothing(cast: Cast) -> None:
    rejected, withdrawn = proposed(cast, ADD), proposed(cast, ADD)

    decide_rules(rejected, outcome=RulesOutcome.REJECTED, reason="no", by=cast.reviewer, now=NOW)
    withdraw_rules(withdrawn, reason="a slip", by=cast.engineer, now=NOW)

    assert [version.decision.outcome for version in (rejected, withdrawn)] == [
        "rejected",
        "withdrawn",
    ]
    assert newest_approved(cast.system).number == 1
    assert not RulesJob.objects.exists()
    with pytest.raises(ValueError, match="withdraw_rules"):
        decide_rules(
            rejected, outcome=RulesOutcome.WITHDRAWN, reason="no", by=cast.reviewer, now=NOW
        )


@dataclass(frozen=True, slots=True)
class Refused:
    """An act, who tries it, and the sentence that refuses it."""

    act: Callable[[Cast], object]
    sentence: str


def _decide(version: RulesVersion, by: object, outcome: str = "approved") -> None:
    decide_rules(version, outcome=RulesOutcome(outcome), reason="why", by=by, now=NOW)


def _second_engineer(cast: Cast) -> object:
    second = person("second_engineer")
    set_member(cast.system, second, Role.ENGINEER)
    return second


def _after_decision(cast: Cast) -> None:
    version = proposed(cast, ADD)
    _decide(version, cast.owner, "rejected")
    _decide(version, cast.reviewer)


def _own(cast: Cast) -> None:
    version = proposed(cast, ADD)
    set_member(cast.system, cast.engineer, Role.REVIEWER)
    _decide(version, cast.engineer)


def _uploader(cast: Cast) -> None:
    version = proposed(cast, ADD)
    ingest(cast.system, [record()], by=cast.reviewer)
    _decide(version, cast.reviewer, "rejected")


def _overtaken(cast: Cast) -> None:
    version = proposed(cast, OTHER)
    approved(cast, ADD)
    _decide(version, cast.owner)


def _overtaken_preview(cast: Cast) -> None:
    preview = drafted(cast, OTHER)
    approved(cast, ADD)
    propose_rules(preview, reason="why", by=cast.engineer, now=NOW)


def _twice(cast: Cast) -> None:
    preview = drafted(cast, ADD)
    for _ in range(2):
        propose_rules(preview, reason="why", by=cast.engineer, now=NOW)


OVERTAKEN = (
    "Version 3 was approved meanwhile, and this change was made on version 1: "
    "preview it again on version 3."
)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            Refused(
                lambda c: start_preview(c.system, ADD, by=c.reviewer, now=NOW),
                permissions.NOT_AN_ENGINEER,
            ),
            id="reviewer-drafts",
        ),
        pytest.param(
            Refused(
                lambda c: start_preview(c.other_system, ADD, by=c.engineer, now=NOW),
                permissions.NOT_AN_ENGINEER,
            ),
            id="engineer-elsewhere",
        ),
        pytest.param(
            Refused(
                lambda c: propose_rules(
                    drafted(c, ADD), reason="why", by=_second_engineer(c), now=NOW
                ),
                "This preview is a draft of engineer; make one of your own.",
            ),
            id="somebody-elses-draft",
        ),
        pytest.param(
            Refused(
                lambda c: propose_rules(drafted(c, ADD), reason="why", by=c.viewer, now=NOW),
                permissions.NOT_AN_ENGINEER,
            ),
            id="viewer-proposes",
        ),
        pytest.param(
            Refused(
                lambda c: propose_rules(
                    start_preview(c.system, ADD, by=c.engineer, now=NOW),
                    reason="why",
                    by=c.engineer,
                    now=NOW,
                ),
                "What this change does is not worked out yet.",
            ),
            id="effect-unknown",
        ),
        pytest.param(
            Refused(_twice, "This change is proposed already, as version 2."), id="proposed-twice"
        ),
        pytest.param(
            Refused(_overtaken_preview, OVERTAKEN.replace("3", "2")), id="overtaken-preview"
        ),
        pytest.param(
            Refused(lambda c: _decide(proposed(c, ADD), c.engineer), permissions.NOT_A_DECIDER),
            id="engineer-decides",
        ),
        pytest.param(
            Refused(lambda c: _decide(proposed(c, ADD), c.outsider), permissions.NOT_A_DECIDER),
            id="outsider-decides",
        ),
        pytest.param(Refused(_own, permissions.OWN_PROPOSAL), id="own-proposal"),
        pytest.param(Refused(_uploader, permissions.BROUGHT_EVIDENCE), id="uploader"),
        pytest.param(
            Refused(_after_decision, "Version 2 was rejected by owner."), id="decided-already"
        ),
        pytest.param(
            Refused(
                lambda c: _decide(c.system.shown_rules, c.reviewer),
                "The system was made with version 1; nobody decides on it.",
            ),
            id="made-with-the-system",
        ),
        pytest.param(Refused(_overtaken, OVERTAKEN), id="overtaken-version"),
        pytest.param(
            Refused(
                lambda c: withdraw_rules(
                    proposed(c, ADD), reason="why", by=_second_engineer(c), now=NOW
                ),
                permissions.NOT_THE_PROPOSER,
            ),
            id="somebody-else-withdraws",
        ),
        pytest.param(
            Refused(
                lambda c: withdraw_rules(approved(c, ADD), reason="why", by=c.engineer, now=NOW),
                "Version 2 was approved by reviewer.",
            ),
            id="withdrawn-too-late",
        ),
        pytest.param(
            Refused(lambda c: stop_work(approved(c, ADD), by=c.viewer, now=NOW), permissions.NOT_A_WORKER),
            id="viewer-stops",
        ),
        pytest.param(
            Refused(
                lambda c: stop_work(proposed(c, ADD), by=c.engineer, now=NOW),
                "Nobody works on version 2.",
            ),
            id="nothing-to-stop",
        ),
        pytest.param(
            Refused(
                lambda c: restart_work(approved(c, ADD), by=c.outsider, now=NOW),
                permissions.NOT_A_WORKER,
            ),
            id="outsider-restarts",
        ),
        pytest.param(
            Refused(
                lambda c: restart_work(approved(c, ADD), by=c.owner, now=NOW),
                "The work on version 2 has not stopped.",
            ),
            id="not-stopped",
        ),
        pytest.param(
            Refused(
                lambda c: preview_again(c.system.shown_rules, by=c.engineer, now=NOW),
                "Version 1 was made whole: it is no change of another.",
            ),
            id="no-change-to-repeat",
        ),
    ],
)  # fmt: skip
def test_a_refused_act_says_why_and_leaves_no_trace(cast: Cast, case: Refused) -> None:
    with pytest.raises(RulesError) as refused:
        case.act(cast)
    assert str(refused.value) == case.sentence


def test_who_declared_a_run_does_not_decide(cast: Cast) -> None:
    from traces.services.work import declare_run, release_named

    version = proposed(cast, ADD)
    release = release_named(cast.system, "1.0", by=cast.engineer)
    assert permissions.decision_refusal(version, cast.reviewer) == ""
    declare_run(release, "nightly", trials=1, by=cast.reviewer, now=NOW)
    assert permissions.decision_refusal(version, cast.reviewer) == permissions.BROUGHT_EVIDENCE
    assert permissions.decision_refusal(version, cast.second_reviewer) == ""


def test_a_person_who_was_switched_off_does_nothing(cast: Cast) -> None:
    version = proposed(cast, ADD)
    cast.reviewer.is_active = False
    cast.reviewer.save()
    assert permissions.decision_refusal(version, cast.reviewer) == permissions.NOT_A_DECIDER


def test_an_overtaken_version_may_be_rejected_and_its_change_previewed_again(cast: Cast) -> None:
    version = proposed(cast, OTHER)
    newest = approved(cast, ADD)

    again = preview_again(version, by=cast.engineer, now=NOW)
    _decide(version, cast.owner, "rejected")

    assert again.base == newest
    assert again.change == version.change
    assert again.document == rule_set_document(RuleSet((RULE,), (("get_order", ToolKind.READ),)))


def test_a_change_that_was_made_meanwhile_is_no_change_any_more(cast: Cast) -> None:
    preview = drafted(cast, ADD)
    approved(cast, ADD)
    with pytest.raises(RulesError, match="This changes nothing"):
        preview_again(preview, by=cast.engineer, now=NOW)


def test_a_stored_change_that_is_not_whole_is_no_refusal(cast: Cast) -> None:
    preview = drafted(cast, ADD)
    preview.change = {"put": [{}]}
    with pytest.raises(ValueError, match="holds no whole change"):
        preview_again(preview, by=cast.engineer, now=NOW)


def test_the_rejection_settings_are_carried_along(cast: Cast) -> None:
    document = {"rules": [], "tools": {}, "rejection": {"flag": False, "prefixes": ["no:"]}}
    cast.system.shown_rules = RulesVersion.objects.create(
        system=cast.system, number=2, document=document, reason="made whole"
    )
    cast.system.save()

    preview = start_preview(cast.system, ADD, by=cast.engineer, now=NOW)

    assert preview.document["rejection"] == document["rejection"]


def test_work_is_stopped_and_taken_up_again(cast: Cast) -> None:
    version = approved(cast, ADD)
    RulesJob.objects.update(after=7, n_done=7, n_tries=3, state=WorkState.WORKING.value)

    stop_work(version, by=cast.engineer, now=NOW)

    job = RulesJob.objects.get()
    assert (job.state, job.is_cancel_asked, job.cancelled_by, job.after) == (
        WorkState.CANCELLED.value,
        True,
        cast.engineer,
        7,
    )
    restart_work(version, by=cast.owner, now=NOW)
    job = RulesJob.objects.get()
    assert (job.state, job.is_cancel_asked, job.cancelled_by, job.after, job.n_tries) == (
        WorkState.WAITING.value,
        False,
        None,
        7,
        0,
    )


def test_the_operator_takes_up_failed_work_again(cast: Cast) -> None:
    version = approved(cast, ADD)
    RulesJob.objects.update(state=WorkState.FAILED.value, failure="It stopped.")

    restart_work(version, now=NOW)

    job = RulesJob.objects.get()
    assert (job.state, job.failure) == (WorkState.WAITING.value, "")


def test_work_on_a_version_that_a_later_one_replaced_is_not_taken_up(cast: Cast) -> None:
    version, later = approved(cast, ADD), approved(cast, OTHER)
    stop_work(version, by=cast.engineer, now=NOW)
    cast.system.shown_rules = later
    cast.system.save()

    with pytest.raises(RulesError, match="Version 3, approved later, is shown already."):
        restart_work(version, by=cast.engineer, now=NOW)


def test_suggestions_are_asked_for_once(cast: Cast) -> None:
    first = ask_suggestions(cast.system, now=NOW)
    later = NOW.replace(hour=10)
    assert (first.rules, first.state) == (cast.system.shown_rules, WorkState.WAITING.value)

    ask_suggestions(cast.system, now=later)
    assert RulesSuggestions.objects.get().touched_at == NOW

    RulesSuggestions.objects.update(
        state=WorkState.DONE.value, n_done=5, n_total=5, n_tries=1, result={}, result_at=NOW
    )
    ask_suggestions(cast.system, now=later)
    row = RulesSuggestions.objects.get()
    assert (row.state, row.n_done, row.n_tries, row.touched_at) == ("waiting", 0, 0, later)
    assert (row.result, row.result_at) == ({}, NOW)


def test_a_decision_is_never_edited(cast: Cast) -> None:
    approved(cast, ADD)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        RulesDecision.objects.update(reason="other")
