from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.utils import timezone

from reviews.models import Flag, FlagClosing, FlagCode
from reviews.selectors.accepted import (
    candidate_of,
    flagged_on_path,
    group_standings,
    members_of_path,
    register_of,
)
from reviews.services.accepted_paths import withdraw_path
from tests.support.accepted import accept, show_rules, task_of, trial_of
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.core.paths import PathLevel
from traces.core.rules import ArgumentRule, Arithmetic, RuleSet
from traces.models import Release, TrajectoryPaths
from traces.selectors.task_detail import ChosenTrials

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
SUMS = RuleSet(rules=(ArgumentRule("calculate", "expression", Arithmetic(), "Same sum.", "e"),))


def calculates(*expressions: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple(("calculate", {"expression": each}) for each in expressions)


def release(name: str) -> Release:
    return Release.objects.get(name=name)


def entries(cast: Cast) -> list[tuple[str, int, list[tuple[str, int]]]]:
    """Name, trials and releases of the register."""
    names = {each.pk: each.name for each in Release.objects.all()}
    register = register_of(task_of(cast.system).pk, cast.system.shown_rules_id)
    return [
        (entry.name, entry.n_trials, [(names[t.release_pk], t.n_trials) for t in entry.taken])
        for entry in register.entries
    ]


@pytest.fixture
def releases(cast: Cast) -> Cast:
    """Three releases: 1200 is written in another way in each, the last one also looks up."""
    ingest(cast.system, [record("t1", n, calls=calculates("1200")) for n in range(2)])
    ingest(
        cast.system,
        [
            record("t1", 0, calls=calculates("1200")),
            record("t1", 1, calls=calculates("2 * 600")),
            record("t1", 2, calls=calculates("7"), verdicts=FAIL),
        ],
        release="2.0",
    )
    ingest(
        cast.system,
        [
            record("t1", 0, calls=calculates("600 + 600")),
            record("t1", 1, calls=(("look_up", {}), *calculates("1200"))),
        ],
        release="3.0",
    )
    return cast


def test_a_path_covers_finer_paths_of_every_release(releases: Cast) -> None:
    accept(releases, level=PathLevel.EQUIVALENT)
    accept(releases, level=PathLevel.SEQUENCE)

    assert entries(releases) == [
        ("Accepted 1", 3, [("2.0", 1), ("1.0", 2)]),
        ("Accepted 2", 5, [("3.0", 1), ("2.0", 2), ("1.0", 2)]),
    ]


def test_rules_make_accepted_paths_one_and_widen_what_they_cover(releases: Cast) -> None:
    accept(releases, level=PathLevel.EQUIVALENT)
    accept(releases, "1", release="3.0", level=PathLevel.EQUIVALENT)
    accept(releases, "1", release="2.0", level=PathLevel.EQUIVALENT)
    before = entries(releases)
    second = show_rules(releases.system, SUMS)
    merged = entries(releases)
    show_rules(releases.system, RuleSet())

    assert (
        before
        == entries(releases)
        == [
            ("Accepted 1", 3, [("2.0", 1), ("1.0", 2)]),
            ("Accepted 2", 1, [("3.0", 1)]),
            ("Accepted 3", 1, [("2.0", 1)]),
        ]
    )
    assert merged == [
        ("Accepted 1 and 3", 5, [("3.0", 1), ("2.0", 2), ("1.0", 2)]),
        ("Accepted 2", 1, [("3.0", 1)]),
    ]
    assert second.number == 2


def test_a_withdrawn_path_leaves_the_register_for_its_history(releases: Cast) -> None:
    first = accept(releases, reason="Fine.")
    second = accept(releases, level=PathLevel.EXACT)
    now = timezone.now()
    withdraw_path(second, reason="Too narrow.", by=releases.engineer, now=now)
    withdraw_path(first, reason="It lies.", by=releases.engineer, now=now)
    register = register_of(task_of(releases.system).pk, releases.system.shown_rules_id)

    assert register.entries == ()
    assert [
        (p.number, p.reason, p.by, p.withdrawn_reason, p.withdrawn_by, p.withdrawn_at)
        for p in register.withdrawn
    ] == [
        (2, "Looked at it.", "engineer", "Too narrow.", "engineer", now),
        (1, "Fine.", "engineer", "It lies.", "engineer", now),
    ]
    assert register.graded == (release("3.0").pk, release("2.0").pk, release("1.0").pk)


def test_a_path_that_no_trial_takes_any_more_stays_in_the_register(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    accept(cast)
    ingest(
        cast.system,
        [
            {
                "record": "verdicts",
                "task_id": "t1",
                "trial": 0,
                "verdicts": [verdict("fail", id="v")],
            }
        ],
    )
    assert entries(cast) == [("Accepted 1", 0, [])]


def standings(cast: Cast, level: str, *, chosen: tuple[str, ...] = ()) -> dict[str, Any]:
    """What the groups of trials come to, by the label of a trial in each."""
    task = task_of(cast.system)
    wanted = ChosenTrials(
        task.pk,
        cast.system.shown_rules_id,
        tuple(release(name).pk for name in chosen),
    )
    rows = TrajectoryPaths.objects.filter(
        trajectory__task=task, rules=cast.system.shown_rules
    ).values_list(level, flat=True)
    found = group_standings(wanted, path_key=level, keys=tuple(rows))
    names = {each.pk: each.name for each in Release.objects.all()}
    return {
        "paths": (found.n_accepted, found.n_paths),
        "newest": names.get(found.newest_release or 0, ""),
        "has_earlier": found.has_earlier,
        "groups": sorted(
            (g.n_trials, g.n_covered, g.n_flagged, names[g.first_release])
            for g in found.groups.values()
        ),
    }


def test_groups_are_accepted_partly_accepted_or_new(releases: Cast) -> None:
    accept(releases, level=PathLevel.EQUIVALENT)

    assert standings(releases, "sequence") == {
        "paths": (0, 2),
        "newest": "3.0",
        "has_earlier": True,
        "groups": [(1, 0, 0, "3.0"), (5, 3, 0, "1.0")],
    }
    assert standings(releases, "exact") == {
        "paths": (1, 4),
        "newest": "3.0",
        "has_earlier": True,
        "groups": [
            (1, 0, 0, "2.0"),
            (1, 0, 0, "3.0"),
            (1, 0, 0, "3.0"),
            (3, 3, 0, "1.0"),
        ],
    }
    assert standings(releases, "sequence", chosen=("1.0",)) == {
        "paths": (1, 1),
        "newest": "1.0",
        "has_earlier": False,
        "groups": [(2, 2, 0, "1.0")],
    }
    show_rules(releases.system, SUMS)
    assert standings(releases, "sequence")["groups"] == [(1, 0, 0, "3.0"), (5, 5, 0, "1.0")]


def test_flags_on_a_path_are_counted_by_trial(releases: Cast) -> None:
    trial = trial_of(releases.system, "0", release="2.0")
    for key in ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"):
        Flag.objects.create(
            system=releases.system,
            trial=trial,
            code=FlagCode.CITED_STEP_MISSING.value,
            key=key,
            reason="step 99",
            raised_at=timezone.now(),
        )
    assert standings(releases, "sequence")["groups"] == [(1, 0, 0, "3.0"), (5, 0, 1, "1.0")]
    assert standings(releases, "sequence", chosen=("3.0",))["groups"] == [
        (1, 0, 0, "3.0"),
        (1, 0, 1, "1.0"),
    ]


def test_a_task_without_a_passing_trial_has_no_group(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=FAIL)])
    assert standings(cast, "exact") == {
        "paths": (0, 0),
        "newest": "1.0",
        "has_earlier": False,
        "groups": [],
    }


def test_a_candidate_says_what_each_level_would_cover(releases: Cast) -> None:
    accept(releases, level=PathLevel.SEQUENCE)
    task, system = task_of(releases.system), releases.system
    found = candidate_of(task, system, trial_of(system, "1", release="2.0").uuid)
    assert found is not None

    assert {
        level.value: (p.n_trials, p.n_releases, p.n_failed, p.facts.accepted)
        for level in PathLevel
        for p in [found.path(level, messages=False)]
    } == {
        "tool_set": (5, 3, 1, ()),
        "effects": (1, 1, 0, ()),
        "reads_any_order": (5, 3, 1, ()),
        "sequence": (5, 3, 1, (1,)),
        "equivalent": (1, 1, 0, ()),
        "exact": (1, 1, 0, ()),
    }
    assert found.covering == ((1, "sequence"),)
    assert (found.label, found.release_name) == ("1", "2.0")
    members = members_of_path(
        task.pk, system.shown_rules_id, path_key="sequence", key=found.keys["sequence"]
    )
    assert [n for _, n in members] == [3, 1, 1]


def test_trials_that_keep_a_path_back_pass_with_an_open_flag(releases: Cast) -> None:
    system, task = releases.system, task_of(releases.system)
    flags = [
        Flag.objects.create(
            system=system,
            trial=trial_of(system, label, release=name),
            code=FlagCode.CITED_STEP_MISSING.value,
            key=uuid.uuid4(),
            reason="look",
            raised_at=timezone.now(),
        )
        for name, label in (("1.0", "1"), ("1.0", "0"), ("1.0", "0"), ("2.0", "1"), ("2.0", "2"))
    ]
    FlagClosing.objects.create(
        flag=flags[0], reason="Fine.", by=releases.reviewer, closed_at=timezone.now()
    )
    found = candidate_of(task, system, trial_of(system).uuid)
    assert found is not None

    def kept_back(level: PathLevel) -> list[tuple[str, str]]:
        key = found.keys[level.value]
        trials = flagged_on_path(task.pk, system.shown_rules_id, path_key=level.value, key=key)
        assert len(trials) == found.path(level, messages=False).facts.n_flagged
        return [(trial.release_name, trial.label) for trial in trials]

    assert kept_back(PathLevel.SEQUENCE) == [("2.0", "1"), ("1.0", "0")]
    assert kept_back(PathLevel.EXACT) == [("1.0", "0")]


@pytest.mark.parametrize("query", ["standings", "members", "flagged"])
def test_a_column_that_holds_no_keys_is_refused(cast: Cast, query: str) -> None:
    ingest(cast.system, [record("t1", 0)])
    task = task_of(cast.system)
    with pytest.raises(ValueError, match="no column of path keys: id"):
        if query == "members":
            members_of_path(task.pk, 1, path_key="id", key=task.uuid)
        elif query == "flagged":
            flagged_on_path(task.pk, 1, path_key="id", key=task.uuid)
        else:
            group_standings(ChosenTrials(task.pk, 1), path_key="id", keys=())
