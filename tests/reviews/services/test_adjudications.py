from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evalsite.after_review import decided_again
from reviews.core.disposition import AdjudicationRuling
from reviews.models import (
    Adjudication,
    CaseEvent,
    Criterion,
    Dispute,
    DisputeSkip,
    RubricRequest,
    Verdict,
)
from reviews.permissions.adjudications import (
    ADDED_EVIDENCE,
    BROUGHT_EVIDENCE,
    NOT_A_REVIEWER,
    OWN_CONTRACT,
    OWN_VERDICT,
    PARTY_ONLY,
    UPLOADED_VERDICTS,
)
from reviews.selectors.adjudicating import SeenBasis, dispute_basis
from reviews.selectors.standings import TrialStandings, trial_standings
from reviews.services.adjudications import (
    LONGEST_REASON,
    MORE_EVIDENCE,
    NO_DISPUTE,
    NO_REASON,
    NOT_SEEN,
    OTHER_CONTRACT,
    OTHER_VERDICTS,
    AdjudicationConflictError,
    AdjudicationDeniedError,
    AdjudicationError,
    adjudicate,
    skip_dispute,
)
from reviews.services.person_verdicts import give_verdict
from tests.support.adjudications import CONTRACT, disputed_trial, seen_of
from tests.support.cast import Cast, person
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from tests.support.labels import stored_set
from traces.core.records import TrialStatus, VerdictValue
from traces.models import EvidenceAddition, Member, Role, Run, Task, Trial, User
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
PASS, FAIL = AdjudicationRuling.PASS, AdjudicationRuling.FAIL
INSUFFICIENT = AdjudicationRuling.INSUFFICIENT_EVIDENCE
UNCLEAR = AdjudicationRuling.RUBRIC_UNCLEAR


def decide(trial: Trial, by: User, **changed: Any) -> Adjudication:
    asked: dict[str, Any] = {
        "criterion": "truthful",
        "ruling": FAIL,
        "reason": "Step 2 shows it.",
        "steps": [2],
        "now": NOW,
    }
    return adjudicate(trial, **(asked | changed), by=by)


def test_a_decision_is_kept_with_what_it_was_made_on(cast: Cast) -> None:
    trial = disputed_trial(cast)
    basis = dispute_basis(trial, "truthful")
    assert basis.requirement is not None

    made = decide(trial, cast.reviewer, reason=" So. ", steps=[3, 2, 2], seen=seen_of(trial))

    stored = Adjudication.objects.select_related("criterion").get(pk=made.pk)
    assert (stored.system, stored.trial, stored.criterion.name) == (cast.system, trial, "truthful")
    assert (stored.ruling, stored.reason, stored.cited_steps) == ("fail", "So.", [2, 3])
    assert (stored.contract_id, stored.criterion_digest, stored.rubric_version) == (
        basis.contract_pk,
        basis.criterion_digest,
        "r1",
    )
    verdicts = Verdict.objects.filter(trial=trial, criterion__name="truthful")
    assert stored.seen == [row.pk for row in verdicts.order_by("pk")]
    assert (stored.evidence_order, stored.evidence_digest) == (0, trial.digest)
    assert (stored.replaces, stored.is_by_party, stored.by, stored.decided_at) == (
        None,
        False,
        cast.reviewer,
        NOW,
    )


def test_the_case_tells_of_a_decision(cast: Cast) -> None:
    trial = disputed_trial(cast)

    decide(trial, cast.reviewer)

    event = CaseEvent.objects.get(case__trial=trial, kind="adjudicated")
    assert (event.text, event.by, event.detail) == (
        "Step 2 shows it.",
        cast.reviewer,
        {
            "criterion": "truthful",
            "ruling": "fail",
            "is_correction": False,
            "is_by_party": False,
        },
    )


def test_the_same_again_adds_nothing(cast: Cast) -> None:
    trial = disputed_trial(cast)
    seen = seen_of(trial)

    first = decide(trial, cast.reviewer, seen=seen)
    again = decide(trial, cast.reviewer, seen=seen, now=NOW + timedelta(seconds=1))

    assert again == first
    assert list(Adjudication.objects.all()) == [first]


def test_a_correction_names_the_decision_before_it_and_both_stay(cast: Cast) -> None:
    trial = disputed_trial(cast)
    first = decide(trial, cast.reviewer, seen=seen_of(trial))

    own = decide(trial, cast.reviewer, ruling=PASS, seen=seen_of(trial))
    other = decide(trial, cast.second_reviewer, ruling=INSUFFICIENT, seen=seen_of(trial))

    assert (own.replaces, other.replaces) == (first, own)
    rows = Adjudication.objects.order_by("pk").values_list("ruling", flat=True)
    assert list(rows) == ["fail", "pass", "insufficient_evidence"]
    events = CaseEvent.objects.filter(kind="adjudicated").order_by("pk")
    assert [event.detail["is_correction"] for event in events if event.detail] == [
        False,
        True,
        True,
    ]


def test_what_was_decided_on_a_wording_stands_when_it_is_asked_again(cast: Cast) -> None:
    trial = disputed_trial(cast)
    reworded = CONTRACT.replace("Is what", "Is all that")
    first = decide(trial, cast.reviewer, seen=seen_of(trial))
    asked_now(cast, trial, reworded)
    other = decide(trial, cast.reviewer, ruling=PASS, seen=seen_of(trial))

    asked_now(cast, trial, CONTRACT)
    basis = dispute_basis(trial, "truthful")
    again = decide(trial, cast.second_reviewer, ruling=UNCLEAR, seen=str(basis.seen))
    asked_now(cast, trial, reworded)

    assert (basis.head_pk, basis.last_pk) == (first.pk, other.pk)
    assert (other.replaces, again.replaces) == (first, other)
    assert first.criterion_digest == again.criterion_digest != other.criterion_digest
    assert dispute_basis(trial, "truthful").head_pk == other.pk
    (detail,) = standings_of(trial).details
    assert (detail.standing.rule, detail.standing.result.value) == (4, "pass")
    # Corrected on another wording alone, it stands here.
    assert [(each.uuid, each.is_replaced) for each in detail.rulings] == [(other.uuid, False)]
    asked_now(cast, trial, CONTRACT)
    (detail,) = standings_of(trial).details
    assert [(each.uuid, each.is_replaced) for each in detail.rulings] == [
        (first.uuid, True),
        (again.uuid, False),
    ]


def standings_of(trial: Trial) -> TrialStandings:
    return trial_standings(
        trial.pk,
        system_pk=trial.system_id,
        task_pk=trial.task_id,
        status=TrialStatus.COMPLETED,
        contract_pk=Task.objects.get(pk=trial.task_id).contract_id,
    )


def test_who_may_still_label_it_is_not_told_of_an_earlier_decision(cast: Cast) -> None:
    trial = disputed_trial(cast)
    seen = seen_of(trial)
    decide(trial, cast.reviewer, seen=seen)
    criterion = Criterion.objects.get(system=cast.system, name="truthful")
    stored_set(cast.system, [trial], by=cast.owner, criterion=criterion)

    for before in (seen, seen_of(trial), ""):
        with pytest.raises(AdjudicationError) as refused:
            decide(trial, cast.second_reviewer, seen=before)
        assert str(refused.value).startswith("It waits for a blind label: ")


def asked_now(cast: Cast, trial: Trial, contract: str) -> None:
    contract_in_effect(cast.system, contract, by=cast.engineer)
    decided_again([trial.pk], cast.system, now=NOW)


def test_whoever_comes_second_is_told_who_was_faster(cast: Cast) -> None:
    trial = disputed_trial(cast)
    seen = seen_of(trial)
    first = decide(trial, cast.reviewer, seen=seen)

    with pytest.raises(AdjudicationConflictError) as refused:
        decide(trial, cast.second_reviewer, ruling=PASS, seen=seen)

    assert str(refused.value) == (
        "reviewer decided this at 2026-12-01 10:00:00 UTC: fail. Your own text is kept here. "
        "Read both; if theirs is wrong, correct it."
    )
    with pytest.raises(AdjudicationConflictError, match=NOT_SEEN):
        decide(trial, cast.second_reviewer, ruling=PASS)
    with pytest.raises(AdjudicationConflictError, match=NOT_SEEN):
        decide(trial, cast.second_reviewer, ruling=PASS, seen="nonsense")
    assert list(Adjudication.objects.all()) == [first]


def test_what_changed_since_it_was_opened_is_said(cast: Cast) -> None:
    trial = disputed_trial(cast)
    seen = seen_of(trial)
    judged = verdict("fail", criterion="truthful", grader="j3", kind="model")
    ingest(
        cast.system,
        [{"record": "verdicts", "task_id": "t1", "trial": 0, "verdicts": [judged]}],
    )

    with pytest.raises(AdjudicationConflictError, match=OTHER_VERDICTS):
        decide(trial, cast.reviewer, seen=seen)

    seen = seen_of(trial)
    add_evidence(trial, cast.engineer)
    with pytest.raises(AdjudicationConflictError, match=MORE_EVIDENCE):
        decide(trial, cast.reviewer, seen=seen)

    seen = seen_of(trial)
    contract_in_effect(cast.system, CONTRACT + "# as before\n", by=cast.engineer)
    with pytest.raises(AdjudicationConflictError, match=OTHER_CONTRACT):
        decide(trial, cast.reviewer, seen=seen)
    assert not Adjudication.objects.exists()


def add_evidence(trial: Trial, by: User) -> None:
    EvidenceAddition.objects.create(
        trial=trial,
        order=1,
        parts=["final_state"],
        content=b"",
        source="inspection api",
        reason="It was lost.",
        digest=uuid.uuid4(),
        by=by,
        added_at=NOW,
    )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"reason": " \u200b "}, NO_REASON),
        ({"reason": "x" * (LONGEST_REASON + 1)}, "A reason has at most 4,000 characters."),
        ({"steps": [5]}, "There is no step 5; the transcript has 4 steps."),
        ({"steps": [0]}, "There is no step 0; the transcript has 4 steps."),
        ({"criterion": "tone"}, NO_DISPUTE),
    ],
)
def test_what_cannot_be_kept_is_refused(cast: Cast, changed: dict[str, Any], sentence: str) -> None:
    trial = disputed_trial(cast)

    with pytest.raises(AdjudicationError) as refused:
        decide(trial, cast.reviewer, **changed)

    assert str(refused.value) == sentence
    assert not Adjudication.objects.exists()


def test_a_decision_cites_at_most_fifty_steps(cast: Cast) -> None:
    calls = tuple(("get_order", {"order": str(n)}) for n in range(30))
    trial = disputed_trial(cast, calls=calls)

    with pytest.raises(AdjudicationError, match="A decision cites at most 50 steps."):
        decide(trial, cast.reviewer, steps=range(1, 52))


def test_only_eligible_reviewers_decide(cast: Cast) -> None:
    trial = disputed_trial(cast)
    add_evidence(trial, cast.second_reviewer)
    declared = cast.owner
    set_member(cast.system, person("another owner"), Role.OWNER)
    Run.objects.create(
        release=trial.release, name="own", declared_by=declared, declared_at=NOW, begun_at=NOW
    )
    for user in (cast.engineer, cast.owner):
        with pytest.raises(AdjudicationDeniedError, match=NOT_A_REVIEWER):
            decide(trial, user)
        set_member(cast.system, user, Role.REVIEWER)
    cases = (
        (cast.viewer, NOT_A_REVIEWER),
        (cast.outsider, NOT_A_REVIEWER),
        (cast.engineer, OWN_CONTRACT),
        (cast.owner, BROUGHT_EVIDENCE),
        (cast.second_reviewer, ADDED_EVIDENCE),
    )
    for user, sentence in cases:
        with pytest.raises(AdjudicationDeniedError) as refused:
            decide(trial, user)
        assert str(refused.value) == sentence
    User.objects.filter(pk=cast.reviewer.pk).update(is_active=False)
    with pytest.raises(AdjudicationDeniedError, match=NOT_A_REVIEWER):
        decide(trial, cast.reviewer)


def upload_verdict(cast: Cast, by: User) -> None:
    judged = verdict("fail", criterion="truthful", grader="j3", kind="model")
    alone = {"record": "verdicts", "task_id": "t1", "trial": 0, "verdicts": [judged]}
    ingest(cast.system, [alone], release=None, by=by)


def test_who_uploaded_verdicts_on_the_trial_decides_nothing_there(cast: Cast) -> None:
    trial = disputed_trial(cast)
    upload_verdict(cast, cast.reviewer)

    with pytest.raises(AdjudicationDeniedError, match=UPLOADED_VERDICTS):
        decide(trial, cast.reviewer)
    assert decide(trial, cast.second_reviewer).is_by_party is False


def vote(trial: Trial, by: User) -> Verdict:
    return give_verdict(
        trial,
        criterion="truthful",
        value=VerdictValue.FAIL,
        reason="Step 2.",
        steps=[],
        by=by,
        now=NOW,
    )


def test_nobody_decides_on_their_own_verdict_while_somebody_else_can(cast: Cast) -> None:
    trial = disputed_trial(cast)
    vote(trial, cast.reviewer)

    with pytest.raises(AdjudicationDeniedError, match=OWN_VERDICT):
        decide(trial, cast.reviewer)

    assert decide(trial, cast.second_reviewer).is_by_party is False


@pytest.mark.parametrize(
    "how", ["left", "voted", "added", "judged", "inactive", "uploaded", "proposed"]
)
def test_the_only_reviewer_left_decides_as_a_party_and_never_a_pass(cast: Cast, how: str) -> None:
    other = cast.second_reviewer
    trial = disputed_trial(
        cast,
        uploader=other if how == "uploaded" else None,
        proposer=other if how == "proposed" else None,
    )
    vote(trial, cast.reviewer)
    match how:
        case "left":
            Member.objects.filter(user=other).delete()
        case "voted":
            vote(trial, other)
        case "added":
            add_evidence(trial, other)
        case "judged":
            upload_verdict(cast, other)
        case "inactive":
            User.objects.filter(pk=other.pk).update(is_active=False)

    for ruling in (PASS, UNCLEAR):
        with pytest.raises(AdjudicationDeniedError, match=PARTY_ONLY):
            decide(trial, cast.reviewer, ruling=ruling)
    made = decide(trial, cast.reviewer, ruling=INSUFFICIENT)

    assert (made.ruling, made.is_by_party) == ("insufficient_evidence", True)


def test_an_unclear_rubric_asks_for_a_clearer_text(cast: Cast) -> None:
    trial = disputed_trial(cast)

    made = decide(trial, cast.reviewer, ruling=UNCLEAR, reason="What is true?")

    asked = RubricRequest.objects.get(adjudication=made)
    assert (asked.criterion, asked.rubric_version, asked.reason, asked.by) == (
        "truthful",
        "r1",
        "What is true?",
        cast.reviewer,
    )


def test_an_imported_criterion_is_decided_by_its_name(cast: Cast) -> None:
    sides = [
        verdict("pass", criterion="polite", grader="j1", kind="model"),
        verdict("fail", criterion="polite", grader="j2", kind="model"),
    ]
    ingest(cast.system, [record("t1", 0, verdicts=sides)])
    trial = Trial.objects.get(system=cast.system)

    made = decide(trial, cast.reviewer, criterion="polite")

    assert (made.contract, made.criterion_digest, made.rubric_version) == (None, None, "")
    assert dispute_basis(trial, "polite").head_pk == made.pk


def test_a_decision_under_another_version_of_the_criterion_begins_a_chain_of_its_own(
    cast: Cast,
) -> None:
    trial = disputed_trial(cast)
    decide(trial, cast.reviewer)
    contract_in_effect(
        cast.system, CONTRACT.replace("r1", "r2").replace("say", "tell"), by=cast.engineer
    )

    assert dispute_basis(trial, "truthful").head is None
    made = decide(trial, cast.reviewer, ruling=PASS)

    assert (made.replaces, made.rubric_version) == (None, "r2")


def test_insufficient_evidence_is_decided_again_once_there_is_more(cast: Cast) -> None:
    trial = disputed_trial(cast)
    first = decide(trial, cast.reviewer, ruling=INSUFFICIENT)
    add_evidence(trial, cast.engineer)

    again = decide(trial, cast.reviewer, ruling=INSUFFICIENT, seen=seen_of(trial))

    assert (again.replaces, again.evidence_order) == (first, 1)


def test_what_a_person_has_seen_is_read_back() -> None:
    seen = SeenBasis(contract_pk=3, evidence_order=0, verdicts="2-ab", head_pk=0)
    assert (str(seen), SeenBasis.read(str(seen))) == ("3.0.2-ab.0", seen)
    assert [SeenBasis.read(text) for text in ("", "1.2.3", "a.0.2-ab.0", "1.0.x.²", "9" * 99)] == [
        None
    ] * 5


def test_a_skip_is_kept_with_its_reason_and_once(cast: Cast) -> None:
    trial = disputed_trial(cast)
    dispute = Dispute.objects.get(trial=trial, criterion="truthful")

    first = skip_dispute(dispute, reason="I know the agent's author.", by=cast.reviewer, now=NOW)
    again = skip_dispute(dispute, reason="I know the agent's author.", by=cast.reviewer, now=NOW)

    assert (again, DisputeSkip.objects.count()) == (first, 1)
    with pytest.raises(AdjudicationError, match=NO_REASON):
        skip_dispute(dispute, reason=" ", by=cast.reviewer, now=NOW)
    with pytest.raises(AdjudicationDeniedError, match="Only a reviewer"):
        skip_dispute(dispute, reason="No.", by=cast.engineer, now=NOW)
