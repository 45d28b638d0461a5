"""Signing a release: on exactly what was seen, by the right person, once."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from evalsite.gates import refresh_gate
from evalsite.models import AuditEvent
from evalsite.signing import (
    CHANGED,
    SigningError,
    attestation_of,
    sign_release,
    signing_page,
    signing_view,
    void_sign_off,
)
from evalsite.verification import verify_file
from reviews.core.gate.states import GateState, Mark, Meaning, SignOffState
from reviews.models import SignOff
from reviews.permissions.sign_offs import (
    NOT_AN_OWNER,
    OTHER_DIGEST,
    OTHER_TERMS,
    OWNER_TOO_LATE,
    SAID_ALREADY,
    SIGNED_ALREADY,
    UPLOADED,
)
from tests.support.cast import PASSWORD, Cast
from tests.support.evidence import ingest
from tests.support.signing import (
    APPROVED,
    REJECTED,
    SignedWorld,
    a_ready_release,
    an_owner,
    signed,
    trials,
)
from traces.models import Member, Role, User

pytestmark = pytest.mark.django_db


def refusal(world: SignedWorld, **more: Any) -> SigningError:
    """Why signing is refused; nothing is stored then."""
    before = SignOff.objects.count()
    with pytest.raises(SigningError) as caught:
        signed(world, **more)
    assert SignOff.objects.count() == before
    return caught.value


def state_of(world: SignedWorld, user: User | None = None) -> tuple[SignOffState, tuple[Mark, ...]]:
    view = signing_view(world.release, user, now=timezone.now())
    return view.state, view.marks


def a_further_trial(world: SignedWorld, label: int = 7, *, amount: int = 500) -> None:
    ingest(
        world.cast.system,
        trials([label], amount=amount),
        release=world.release.name,
        run="nightly",
        by=world.cast.engineer,
    )


def test_signing_stores_who_said_what_when_on_what(cast: Cast) -> None:
    world = a_ready_release(cast)
    page = signing_page(world.release, cast.owner, now=timezone.now())
    assert page.gate.state is GateState.READY
    assert [(c.meaning, c.why_not) for c in page.view.choices] == [
        (Meaning.APPROVED, ""),
        (Meaning.WAIVER, "Every check is met, so there is nothing to waive: approve it."),
        (Meaning.REJECTED, ""),
    ]
    row = signed(world, seen=page.digest)
    (line,) = signing_view(world.release, cast.owner, now=timezone.now()).signatures
    assert (line.printed_name, line.role, line.meaning_words, line.digest) == (
        "owner",
        "owner",
        "approves release 1.4.0",
        page.digest,
    )
    assert (line.intended_use, line.scope, line.expires_on) == (
        APPROVED.intended_use,
        APPROVED.scope,
        APPROVED.expires_on,
    )
    checked = verify_file(attestation_of(row))
    assert checked.alterations == ()
    assert checked.statement is not None
    predicate: Any = checked.statement["predicate"]
    assert predicate["signOff"]["printedName"] == "owner"
    assert predicate["signOff"]["tiers"] == ["payments"]
    assert len(predicate["manifest"]["trials"]) == 5
    event = AuditEvent.objects.get(act="sign_off.made")
    assert (event.actor_id, event.role, event.object_id) == (cast.owner.pk, "owner", str(row.uuid))
    assert json.loads(event.after) == {
        "digest": page.digest,
        "key": row.key_id,
        "meaning": "approved",
        "release": str(world.release.uuid),
        "state": "approved",
    }


def test_evidence_that_comes_while_the_page_is_open_refuses_the_signature(cast: Cast) -> None:
    """cases/signoff-stale-evidence--new-fail-while-open."""
    world = a_ready_release(cast)
    seen = signing_page(world.release, cast.owner, now=timezone.now()).digest
    a_further_trial(world)
    error = refusal(world, seen=seen)
    assert (error.sentence, error.status) == (CHANGED, 409)
    assert any("trial 7 of task t1" in sentence.lower() for sentence in error.differences)


def test_evidence_after_the_signature_makes_it_stale_and_says_so_at_once(cast: Cast) -> None:
    world = a_ready_release(cast)
    signed(world)
    assert state_of(world) == (SignOffState.APPROVED, ())
    a_further_trial(world)
    view = signing_view(world.release, cast.owner, now=timezone.now())
    assert (view.state, view.marks, view.is_being_compared) == (
        SignOffState.APPROVED,
        (Mark.STALE,),
        True,
    )
    refresh_gate(world.release.pk, now=timezone.now())
    signing_page(world.release, cast.owner, now=timezone.now())
    view = signing_view(world.release, cast.owner, now=timezone.now())
    assert (view.marks, view.is_being_compared) == ((Mark.STALE,), False)
    assert any("trial 7 of task t1" in sentence.lower() for sentence in view.differences)


def test_a_gate_computed_again_over_the_same_evidence_leaves_the_signature_fresh(
    cast: Cast,
) -> None:
    world = a_ready_release(cast)
    signed(world)
    ingest(cast.system, trials([0]), release="1.4.0", run="nightly", by=cast.engineer)
    refresh_gate(world.release.pk, now=timezone.now())
    assert state_of(world) == (SignOffState.APPROVED, ())


def test_who_may_sign(cast: Cast) -> None:
    """cases/signoff-identity--self-approval."""
    world = a_ready_release(cast)
    Member.objects.filter(user=cast.engineer, system=cast.system).update(role=Role.OWNER.value)
    error = refusal(world, by=cast.engineer)
    assert (error.status, error.sentence) == (403, UPLOADED)
    error = refusal(world, password="")
    assert (error.status, error.sentence) == (403, "The password is wrong.")
    for _ in range(3):
        refusal(world, password="wrong")
    error = refusal(world, password="wrong")
    assert error.sentence == "The password was wrong too often. Wait 15 minutes after the last try."
    assert refusal(world).sentence == error.sentence  # the right one does not help now
    events = AuditEvent.objects.filter(act="sign_off.refused").order_by("seq")
    assert [json.loads(event.after)["why"] for event in events] == [
        *["The password is wrong."] * 4,
        *[error.sentence] * 2,
    ]
    later = timezone.now() + timedelta(minutes=16)
    page = signing_page(world.release, cast.owner, now=later)
    row = sign_release(
        world.release,
        by=cast.owner,
        password=PASSWORD,
        terms=APPROVED,
        seen_digest=page.digest,
        now=later,
    )
    assert (row.printed_name, row.role, row.meaning) == ("owner", "owner", "approved")


def test_a_high_tier_needs_two_people(cast: Cast) -> None:
    """cases/signoff-identity--two-person-tier."""
    world = a_ready_release(cast, n_owners=2)
    first = signed(world)
    view = signing_view(world.release, world.second, now=timezone.now())
    assert (view.state, view.n_signed, view.n_needed) == (SignOffState.PARTLY, 1, 2)
    assert view.joins == APPROVED
    error = refusal(world)
    assert (error.status, error.sentence) == (409, SIGNED_ALREADY)
    Member.objects.filter(user=cast.engineer, system=cast.system).update(role=Role.OWNER.value)
    assert refusal(world, by=cast.engineer).status == 403
    error = refusal(world, by=world.second, seen="0" * 64)
    assert (error.status, error.sentence) == (409, OTHER_DIGEST)
    other = replace(APPROVED, scope="Everybody")
    assert refusal(world, by=world.second, terms=other).sentence == OTHER_TERMS
    late = an_owner(cast, "late", since=timezone.now())
    error = refusal(world, by=late)
    assert (error.status, error.sentence) == (403, OWNER_TOO_LATE)
    second = signed(world, by=world.second, terms=replace(APPROVED, reason="Seen it."))
    view = signing_view(world.release, cast.viewer, now=timezone.now())
    assert (view.state, view.n_signed, view.n_needed) == (SignOffState.APPROVED, 2, 2)
    assert [line.printed_name for line in view.signatures] == ["ana", "owner"]
    void_sign_off(
        second, by=cast.owner, password=PASSWORD, reason="By mistake.", now=timezone.now()
    )
    assert state_of(world)[0] is SignOffState.PARTLY
    void_sign_off(first, by=cast.owner, password=PASSWORD, reason="Both.", now=timezone.now())
    assert state_of(world)[0] is SignOffState.VOID


def test_an_open_signature_over_other_evidence_is_declared_void_first(cast: Cast) -> None:
    world = a_ready_release(cast, n_owners=2)
    first = signed(world)
    a_further_trial(world, amount=10)
    assert state_of(world) == (SignOffState.PARTLY, (Mark.STALE,))
    assert refusal(world, by=world.second).sentence == OTHER_DIGEST
    void_sign_off(first, by=world.second, password=PASSWORD, reason="Old.", now=timezone.now())
    signed(world, by=world.second)
    assert state_of(world)[0] is SignOffState.PARTLY


def test_pressing_twice_gives_one_signature(cast: Cast) -> None:
    world = a_ready_release(cast)
    seen = signing_page(world.release, cast.owner, now=timezone.now()).digest
    signed(world, seen=seen)
    error = refusal(world, seen=seen)
    assert (error.status, error.sentence) == (409, SAID_ALREADY)
    renewed = replace(APPROVED, expires_on=date(2099, 2, 1))
    signed(world, seen=seen, terms=renewed)
    assert SignOff.objects.count() == 2


def test_a_blocked_gate_is_rejected_and_not_approved(cast: Cast) -> None:
    world = a_ready_release(cast)
    a_further_trial(world)
    error = refusal(world)
    assert error.sentence == "Only a gate that is ready can be approved; this one is blocked."
    waiver = replace(
        APPROVED,
        meaning=Meaning.WAIVER,
        reason="It hurts nobody.",
        waived_tier="payments",
        waived_check="prohibited",
    )
    assert refusal(world, terms=waiver).sentence == "Prohibited actions cannot be waived."
    signed(world, terms=REJECTED)
    assert state_of(world)[0] is SignOffState.REJECTED


def test_one_check_is_waived_with_reason_scope_and_date(cast: Cast) -> None:
    world = a_ready_release(cast)
    a_further_trial(world, amount=10)
    ingest(
        cast.system,
        [{**trials([9])[0], "final_state": None}],
        release="1.4.0",
        run="nightly",
        by=cast.engineer,
    )
    page = signing_page(world.release, cast.owner, now=timezone.now())
    assert page.gate.state is not GateState.READY
    found = page.view.waivable
    assert found is not None
    waiver = replace(
        APPROVED,
        meaning=Meaning.WAIVER,
        reason="One trial lost its state.",
        waived_tier=found.tier,
        waived_check=found.kind.value,
    )
    assert refusal(world, terms=replace(waiver, waived_check="declared")).sentence == (
        "The check that the waiver names is met."
    )
    assert refusal(world, terms=replace(waiver, reason=" ")).status == 422
    signed(world, terms=waiver)
    assert state_of(world)[0] is SignOffState.WAIVER


def test_an_approval_expires_after_its_day(cast: Cast) -> None:
    world = a_ready_release(cast)
    today = timezone.now()
    tomorrow = (today + timedelta(days=1)).date()
    signed(world, terms=replace(APPROVED, expires_on=tomorrow))
    for days, marks in ((1, ()), (2, (Mark.EXPIRED,))):
        view = signing_view(world.release, None, now=today + timedelta(days=days))
        assert (view.state, view.marks) == (SignOffState.APPROVED, marks)


def test_a_person_who_is_no_owner_any_more_cannot_sign_or_void(cast: Cast) -> None:
    world = a_ready_release(cast)
    row = signed(world, by=world.second)
    seen = signing_page(world.release, cast.owner, now=timezone.now()).digest
    Member.objects.filter(user=world.second).delete()
    assert refusal(world, by=world.second, seen=seen).sentence == NOT_AN_OWNER
    with pytest.raises(SigningError) as caught:
        void_sign_off(row, by=world.second, password=PASSWORD, reason="x", now=timezone.now())
    assert caught.value.status == 403
    (line,) = signing_view(world.release, cast.owner, now=timezone.now()).signatures
    assert (line.role, line.role_now, line.is_newest) == ("owner", "", True)


def test_a_void_needs_reason_and_password_and_happens_once(cast: Cast) -> None:
    world = a_ready_release(cast)
    row = signed(world)
    for reason, password, status in ((" ", PASSWORD, 422), ("x", "wrong", 403), ("\0", "x", 422)):
        with pytest.raises(SigningError) as caught:
            void_sign_off(row, by=cast.owner, password=password, reason=reason, now=timezone.now())
        assert caught.value.status == status
    void_sign_off(row, by=cast.owner, password=PASSWORD, reason="Wrong one.", now=timezone.now())
    row.refresh_from_db()
    with pytest.raises(SigningError) as caught:
        void_sign_off(row, by=cast.owner, password=PASSWORD, reason="x", now=timezone.now())
    assert (caught.value.status, caught.value.sentence) == (409, "This signature is void already.")
    (line,) = signing_view(world.release, cast.owner, now=timezone.now()).signatures
    assert line.void is not None
    assert (line.void.by, line.void.reason) == ("owner", "Wrong one.")
    assert AuditEvent.objects.filter(act="sign_off.voided").count() == 1


@pytest.mark.parametrize("n_signed", [1, 3])
def test_a_view_takes_the_same_queries_for_one_and_three_signatures(
    n_signed: int, cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    world = a_ready_release(cast)
    refresh_gate(world.release.pk, now=timezone.now())
    for number in range(n_signed):
        signed(world, terms=replace(APPROVED, scope=f"Pilot {number}"))
    with django_assert_num_queries(3):
        signing_view(world.release, cast.viewer, now=timezone.now())
    with django_assert_num_queries(11):
        signing_view(world.release, cast.owner, now=timezone.now())


@pytest.mark.parametrize(
    ("terms", "seen", "sentence"),
    [
        (replace(APPROVED, scope=""), "0" * 64, "The scope is needed."),
        (APPROVED, "", "Open the page to sign again: what was shown there is not known."),
        (
            APPROVED,
            "0" * 63 + "G",
            "Open the page to sign again: what was shown there is not known.",
        ),
    ],
)
def test_words_that_are_not_whole_are_refused_before_the_password(
    terms: Any, seen: str, sentence: str, cast: Cast
) -> None:
    world = a_ready_release(cast)
    with pytest.raises(SigningError) as caught:
        sign_release(
            world.release,
            by=cast.owner,
            password="wrong",
            terms=terms,
            seen_digest=seen,
            now=timezone.now(),
        )
    assert (caught.value.status, caught.value.sentence) == (422, sentence)
