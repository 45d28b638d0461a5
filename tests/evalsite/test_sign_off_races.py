"""A signature and a failing trial at the same moment, in two processes.

`SIGN_OFF_RACES=1000` runs the thousand rounds of the promise; a few are run each time.
"""

from __future__ import annotations

import os

import pytest
from pytest_django import Settings

from tests.support.cast import PASSWORD, Cast
from tests.support.sign_off_race import race
from tests.support.signing import a_ready_release

ROUNDS = int(os.environ.get("SIGN_OFF_RACES", "12"))


@pytest.mark.django_db(transaction=True)
def test_no_approval_is_valid_over_evidence_that_lacks_a_trial(
    cast: Cast, settings: Settings
) -> None:
    """cases/signoff-stale-evidence--race."""
    # A slow hash would let most uploads come before the transaction begins.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    cast.owner.set_password(PASSWORD)
    cast.owner.save()
    a_ready_release(cast)
    history = race(cast, rounds=ROUNDS, seed=20261201)
    assert history.bad == []
    assert history.rounds == ROUNDS
    assert history.signed_first + history.evidence_first == ROUNDS
    if ROUNDS >= 100:  # of a few, all may fall to one side
        assert min(history.signed_first, history.evidence_first) > 0
    assert history.reads >= ROUNDS // 2
