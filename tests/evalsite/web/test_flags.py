from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reviews.models import Flag, FlagClosing
from reviews.permissions.flags import BROUGHT_EVIDENCE, closing_refusal
from reviews.services.flags import LONGEST_REASON, NOT_OF_TRIAL, close_flag, flag_trial
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import Role, System, Trial, TrialDisposition, User

pytestmark = pytest.mark.django_db

HOSTILE = "<img src=x onerror=alert(1)>\u202e{{ 7*7 }}"


def trial_of(system: System, label: str = "0") -> Trial:
    return Trial.objects.get(system=system, label=label)


def flagged(cast: Cast, by: User, reason: str = "It looks odd.", label: str = "0") -> Flag:
    trial = trial_of(cast.system, label)
    return flag_trial(trial, reason=reason, by=by, now=timezone.now())


def flags_path(system: System) -> str:
    return f"{root(system)}flags/"


def flag_path(flag: Flag) -> str:
    return f"{flags_path(flag.system)}{flag.uuid}/"


def form_path(trial: Trial) -> str:
    return f"{root(trial.system)}trials/{trial.uuid}/flag/"


def message_of(answer: Any) -> str:
    (message,) = answer.context["messages"]
    return str(message)


# ---- flagging a trial ----


@pytest.mark.parametrize("role", Role)
def test_a_member_flags_a_trial_and_sees_it_there(role: Role, client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    trial, person = trial_of(cast.system), cast.members()[role]
    shown = visit(client, person, f"{root(cast.system)}trials/{trial.uuid}/")
    assert shown.flag_url == form_path(trial)

    answer = client.post(shown.flag_url, {"reason": " It refunds twice at step 2. "}, follow=True)

    assert answer.redirect_chain == [(f"{root(cast.system)}trials/{trial.uuid}/", 302)]
    assert message_of(answer) == "The trial is flagged. A reviewer closes the flag."
    (flag,) = answer.context["page"].flags
    assert (flag.why, flag.reason, flag.by) == (
        "Flagged by a person",
        "It refunds twice at step 2.",
        person.username,
    )
    assert TrialDisposition.objects.get().value == "pass"


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        pytest.param("", "This field is required.", id="empty"),
        pytest.param("  ", "This field is required.", id="blanks"),
        pytest.param("a\x00b", "Null characters are not allowed.", id="nul"),
        pytest.param(
            "\u200b", "Say why: the reason is what the next person reads.", id="nothing seen"
        ),
        pytest.param(
            "x" * (LONGEST_REASON + 1),
            "Ensure this value has at most 2000 characters (it has 2001).",
            id="long",
        ),
    ],
)
def test_a_bad_reason_comes_back_with_the_form(
    reason: str, sentence: str, client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("t1", 0)])
    client.force_login(cast.viewer)

    answer = client.post(form_path(trial_of(cast.system)), {"reason": reason})

    assert answer.status_code == 422
    assert answer.context["page"].form.errors == {"reason": [sentence]}
    assert not Flag.objects.exists()


def test_the_form_names_the_step_and_the_flags_that_are_open(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    flagged(cast, cast.engineer, "First.")
    close_flag(
        flagged(cast, cast.engineer, "Second."),
        reason="Looked.",
        by=cast.reviewer,
        now=timezone.now(),
    )
    trial = trial_of(cast.system)

    page = visit(client, cast.viewer, form_path(trial), step="2")
    assert page.form["reason"].value() == "Step 2: "
    assert [flag.reason for flag in page.flags] == ["First."]
    assert (page.trial.label, page.disposition.label, page.disposition.state) == (
        "0",
        "pass",
        "pass",
    )
    for nonsense in ("x", "-1", "0", "9" * 40):
        page = visit(client, cast.viewer, form_path(trial), step=nonsense)
        assert page.form["reason"].value() == ""


# ---- one flag ----


def test_the_products_flag_shows_its_steps_and_the_verdicts(client: Client, cast: Cast) -> None:
    outside = verdict(
        "fail",
        criterion="action-1",
        grader="actions",
        mandatory=False,
        evidence=[{"step": 2}],
        rationale="x" * 900,
    )
    judge = verdict("pass", grader="judge", kind="model", criterion="tone", rationale="Polite.")
    ingest(
        cast.system,
        [record("t1", 0, verdicts=[verdict(evidence=[{"step": 2}, {"step": 99}]), outside, judge])],
    )
    trial = trial_of(cast.system)
    pages = {flag.code: visit(client, cast.viewer, flag_path(flag)) for flag in Flag.objects.all()}
    assert set(pages) == {"failed-check-outside-basis", "cited-step-missing"}

    page = pages["failed-check-outside-basis"]
    assert [(link.label, link.href) for link in page.steps] == [
        ("step 2", f"{root(cast.system)}trials/{trial.uuid}/?step=2#step-2")
    ]
    assert page.missing_steps == ()
    assert (page.row.note.why, page.row.note.by, page.row.note.criterion) == (
        "A check that is not mandatory failed",
        "the product",
        "action-1",
    )
    assert [
        (v.criterion, v.value, v.word, v.grader, v.note, v.rationale) for v in page.verdicts
    ] == [
        ("action-1", "fail", "fail", "actions", "not mandatory", "x" * 400 + "…"),
        ("outcome", "pass", "pass", "state check", "", ""),
        ("tone", "pass", "pass", "judge", "does not count", ""),
    ]
    page = pages["cited-step-missing"]
    assert (page.steps, page.missing_steps) == ((), (99,))


def test_steps_that_a_person_names_are_links(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    flag = flagged(cast, cast.viewer, "Step 2 again at step 2, Steps 4; step 5, step 0, misstep 3.")

    page = visit(client, cast.viewer, flag_path(flag))

    assert [link.label for link in page.steps] == ["step 2", "step 4"]
    assert page.missing_steps == ()


def test_a_flag_whose_reason_went_away_shows_no_steps(client: Client, cast: Cast) -> None:
    outside = verdict("fail", criterion="a", mandatory=False, evidence=[{"step": 2}])
    ingest(cast.system, [record("t1", 0, verdicts=[verdict(), outside])])
    later = {"record": "verdicts", "task_id": "t1", "trial": 0}
    ingest(cast.system, [later | {"verdicts": [verdict("fail", criterion="outcome 2")]}])

    page = visit(client, cast.viewer, flag_path(Flag.objects.get()))

    assert (page.steps, page.row.disposition.label) == ((), "fail")


def test_long_lists_of_verdicts_and_steps_are_cut(client: Client, cast: Cast) -> None:
    steps = [{"step": n} for n in range(100, 150)]
    verdicts = [verdict(criterion=f"c{n}") for n in range(13)]
    ingest(cast.system, [record("t1", 0, verdicts=[verdict(evidence=steps), *verdicts])])

    page = visit(client, cast.viewer, flag_path(Flag.objects.get()))

    assert page.missing_steps == tuple(range(100, 120))
    assert (len(page.verdicts), page.n_more_verdicts) == (12, 2)


@pytest.mark.parametrize("role", Role)
def test_a_flag_of_somebody_else_is_closed_by_a_reviewer(
    role: Role, client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("t1", 0)])
    flag = flagged(cast, cast.second_reviewer)
    page = visit(client, cast.members()[role], flag_path(flag))
    answer = client.get(flag_path(flag))
    refusal = closing_refusal(role, is_own=False, has_brought=False)
    assert (page.act, page.why_not) == ("Close the flag", refusal)
    assert (b"disabled" in answer.content) is bool(refusal)

    answer = client.post(flag_path(flag), {"reason": "Looked."})

    if role is Role.REVIEWER:
        assert (answer.status_code, answer["Location"]) == (302, flag_path(flag))
        page = visit(client, cast.viewer, flag_path(flag))
        assert (page.row.note.closed_by, page.row.note.closing_reason) == ("reviewer", "Looked.")
    else:
        assert answer.status_code == 403
        assert refusal in answer.content.decode()
        assert not FlagClosing.objects.exists()


def test_whoever_raised_a_flag_withdraws_it(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    flag, other = flagged(cast, cast.viewer), flagged(cast, cast.engineer)
    page = visit(client, cast.viewer, flag_path(flag))
    assert (page.act, page.why_not) == ("Withdraw the flag", "")

    answer = client.post(flag_path(flag), {"reason": "I misread it."}, follow=True)

    assert message_of(answer) == "The flag is closed. The trial has 1 more open flag."
    client.force_login(cast.reviewer)
    answer = client.post(flag_path(other), {"reason": "Looked."}, follow=True)
    assert message_of(answer) == "The flag is closed. The trial has no other open flag."


def test_a_flag_is_closed_with_a_reason_and_once(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    flag = flagged(cast, cast.viewer)
    client.force_login(cast.reviewer)
    answer = client.post(flag_path(flag), {"reason": ""})
    assert answer.status_code == 422
    assert answer.context["page"].form.errors == {"reason": ["This field is required."]}
    answer = client.post(flag_path(flag), {"reason": "\u200b"})
    assert answer.status_code == 422

    close_flag(flag, reason="Looked.", by=cast.second_reviewer, now=timezone.now())
    for reason in ("Too late.", ""):
        answer = client.post(flag_path(flag), {"reason": reason})
        assert answer.status_code == 422
        (sentence,) = answer.context["page"].form.non_field_errors()
        assert sentence.startswith("second_reviewer closed this flag at ")
        assert sentence == answer.context["page"].why_not
        assert sentence.encode() in answer.content
    assert FlagClosing.objects.get().reason == "Looked."


@pytest.mark.parametrize("method", ["get", "post"])
def test_what_is_not_there_is_404(method: str, client: Client, cast: Cast) -> None:
    ingest(cast.other_system, [record("t1", 0)])
    foreign = flag_trial(
        trial_of(cast.other_system), reason="Odd.", by=cast.outsider, now=timezone.now()
    )
    client.force_login(cast.reviewer)
    for path in (
        f"{flags_path(cast.system)}{foreign.uuid}/",
        f"{flags_path(cast.system)}{uuid.uuid4()}/",
        f"{flags_path(cast.system)}no-uuid/",
        f"{root(cast.system)}trials/{foreign.trial.uuid}/flag/",
        f"{root(cast.system)}trials/{uuid.uuid4()}/flag/",
        f"{root(cast.system)}trials/1/flag/",
        flag_path(foreign),
    ):
        assert getattr(client, method)(path, {"reason": "x"}).status_code == 404
    assert (Flag.objects.count(), FlagClosing.objects.count()) == (1, 0)


def test_one_goes_from_an_open_flag_to_the_next(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    ingest(cast.other_system, [record("t1", 0, verdicts=[verdict(score=0)])])
    first, second, third = (flagged(cast, cast.viewer) for _ in range(3))
    close_flag(second, reason="Looked.", by=cast.reviewer, now=timezone.now())

    for flag in (third, second):
        assert visit(client, cast.viewer, flag_path(flag)).next_url == flag_path(first)
    assert visit(client, cast.viewer, flag_path(first)).next_url == ""


# ---- several at once ----


def shown_others(page: Any) -> list[tuple[str, bool]]:
    return [(other.reason, other.is_chosen) for other in page.others]


def test_other_open_flags_of_the_trial_are_closed_with_the_same_reason(
    client: Client, cast: Cast
) -> None:
    long = "x" * 161
    given = [verdict(evidence=[{"step": 99}])]
    ingest(cast.system, [record("t1", 0, verdicts=given), record("t1", 1)])
    first, second = flagged(cast, cast.viewer, "First."), flagged(cast, cast.engineer, long)
    third, elsewhere = flagged(cast, cast.viewer, "Third."), flagged(cast, cast.viewer, label="1")
    close_flag(third, reason="Looked.", by=cast.second_reviewer, now=timezone.now())
    own = Flag.objects.get(by=None)

    page = visit(client, cast.reviewer, flag_path(first))

    assert [(o.value, o.why, o.reason, o.by, o.href, o.is_chosen) for o in page.others] == [
        (
            str(own.uuid),
            "A verdict cites a step that does not exist",
            "state check cites step 99; the transcript has 4 steps.",
            "the product",
            flag_path(own),
            False,
        ),
        (
            str(second.uuid),
            "Flagged by a person",
            "x" * 160 + "…",
            "engineer",
            flag_path(second),
            False,
        ),
    ]
    assert page.more_others is None
    answer = client.get(flag_path(first))
    content = answer.content.decode()
    assert content.count('type="checkbox" name="also"') == 2
    assert "Close with the same reason" in content

    answer = client.post(
        flag_path(first), {"reason": "Looked.", "also": [second.uuid, own.uuid]}, follow=True
    )

    assert answer.redirect_chain == [(flag_path(first), 302)]
    assert message_of(answer) == "3 flags are closed. The trial has no other open flag."
    assert answer.context["page"].others == ()
    assert set(FlagClosing.objects.filter(by=cast.reviewer, reason="Looked.")) == {
        FlagClosing.objects.get(flag=flag) for flag in (first, second, own)
    }
    assert not FlagClosing.objects.filter(flag=elsewhere).exists()


def test_what_is_not_chosen_stays_open(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    first, second, third = (flagged(cast, cast.viewer) for _ in range(3))
    client.force_login(cast.reviewer)

    answer = client.post(
        flag_path(second), {"reason": "Looked.", "also": [first.uuid, first.uuid]}, follow=True
    )

    assert message_of(answer) == "2 flags are closed. The trial has 1 more open flag."
    assert not FlagClosing.objects.filter(flag=third).exists()


@pytest.mark.parametrize("role", Role)
def test_only_flags_that_the_person_may_close_are_listed(
    role: Role, client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("t1", 0)])
    person = cast.members()[role]
    own, other = flagged(cast, person, "Mine."), flagged(cast, cast.second_reviewer, "Theirs.")
    also_own = flagged(cast, person, "Mine too.")

    listed = [reason for reason, _ in shown_others(visit(client, person, flag_path(own)))]
    assert listed == (["Theirs.", "Mine too."] if role is Role.REVIEWER else ["Mine too."])
    listed = [reason for reason, _ in shown_others(visit(client, person, flag_path(other)))]
    assert listed == (["Mine.", "Mine too."] if role is Role.REVIEWER else [])

    answer = client.post(flag_path(own), {"reason": "x", "also": [other.uuid, also_own.uuid]})
    if role is Role.REVIEWER:
        assert (answer.status_code, FlagClosing.objects.count()) == (302, 3)
    else:
        assert (answer.status_code, FlagClosing.objects.count()) == (403, 0)
        sentence = closing_refusal(role, is_own=False, has_brought=False)
        assert sentence in answer.content.decode()
        answer = client.post(flag_path(own), {"reason": "x", "also": [also_own.uuid]})
        assert (answer.status_code, FlagClosing.objects.count()) == (302, 2)


def test_a_bad_reason_keeps_what_was_chosen(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    first = flagged(cast, cast.viewer, "First.")
    second, third = flagged(cast, cast.viewer, "Second."), flagged(cast, cast.viewer, "Third.")
    client.force_login(cast.reviewer)

    for reason in ("", "\u200b"):
        answer = client.post(flag_path(first), {"reason": reason, "also": [second.uuid]})

        assert answer.status_code == 422
        assert shown_others(answer.context["page"]) == [("Second.", True), ("Third.", False)]
        content = answer.content.decode()
        assert f'value="{second.uuid}" checked>' in content
        assert f'value="{third.uuid}">' in content
    assert not FlagClosing.objects.exists()


def test_one_that_was_closed_meanwhile_keeps_all_open(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    first, second, third = (flagged(cast, cast.viewer, f"Flag {n}.") for n in range(3))
    close_flag(second, reason="Looked.", by=cast.second_reviewer, now=timezone.now())
    client.force_login(cast.reviewer)

    chosen = {"reason": "Me too.", "also": [second.uuid, third.uuid]}
    answer = client.post(flag_path(first), chosen)

    assert answer.status_code == 422
    (sentence,) = answer.context["page"].form.non_field_errors()
    assert sentence.startswith("second_reviewer closed one of these flags at ")
    assert sentence.endswith("it is closed once. Nothing was closed now.")
    assert sentence in answer.content.decode()
    assert shown_others(answer.context["page"]) == [("Flag 2.", True)]

    answer = client.post(flag_path(second), {"reason": "Me too.", "also": [third.uuid]})
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert FlagClosing.objects.get().flag == second


@pytest.mark.parametrize(
    "kind", ["other trial", "other system", "unknown", "none", "nul", "number", "hostile", "itself"]
)
def test_ids_of_no_flag_of_the_trial_close_nothing(kind: str, client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1)])
    ingest(cast.other_system, [record("t1", 0)])
    first, second = flagged(cast, cast.viewer), flagged(cast, cast.viewer)
    foreign = flag_trial(
        trial_of(cast.other_system), reason="Odd.", by=cast.outsider, now=timezone.now()
    )
    value = {
        "other trial": str(flagged(cast, cast.viewer, label="1").uuid),
        "other system": str(foreign.uuid),
        "unknown": str(uuid.UUID(int=7)),
        "none": "",
        "nul": "\x00",
        "number": "9" * 400,
        "hostile": HOSTILE,
        "itself": str(first.uuid),
    }[kind]
    client.force_login(cast.reviewer)

    answer = client.post(flag_path(first), {"reason": "Looked.", "also": [str(second.uuid), value]})

    if kind == "itself":
        assert (answer.status_code, FlagClosing.objects.count()) == (302, 2)
        return
    assert answer.status_code == 422
    content = answer.content.decode()
    assert content.count(NOT_OF_TRIAL) == 1
    assert "<img src=x" not in content
    assert not FlagClosing.objects.exists()


def test_many_other_flags_are_listed_in_part(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    first, *others = (flagged(cast, cast.viewer, f"Flag {n}.") for n in range(54))

    page = visit(client, cast.reviewer, flag_path(first))

    assert [other.value for other in page.others] == [str(flag.uuid) for flag in others[:50]]
    assert (page.more_others.label, page.more_others.href) == (
        "3 more open flags",
        f"{flags_path(cast.system)}?trial={first.trial.uuid}",
    )

    answer = client.post(
        flag_path(first), {"reason": "Looked.", "also": [flag.uuid for flag in others[:51]]}
    )
    assert answer.status_code == 422
    sentence = "At most 50 other flags are closed at once."
    assert answer.context["page"].form.errors == {"also": [sentence]}
    assert sentence in answer.content.decode()
    answer = client.post(
        flag_path(first),
        {"reason": "Looked.", "also": [other.value for other in page.others]},
        follow=True,
    )
    assert message_of(answer) == "51 flags are closed. The trial has 3 more open flags."


def test_who_brought_evidence_of_the_release_closes_only_their_own_flags(
    client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0", by=cast.reviewer)
    own, other = flagged(cast, cast.reviewer, "Mine."), flagged(cast, cast.viewer, "Theirs.")
    page = visit(client, cast.reviewer, flag_path(other))
    assert (page.why_not, page.others) == (BROUGHT_EVIDENCE, ())
    content = client.get(flag_path(other)).content.decode()
    assert ' disabled aria-describedby="why-not"' in content
    page = visit(client, cast.reviewer, flag_path(own))
    assert (page.act, page.why_not, page.others) == ("Withdraw the flag", "", ())

    for flag, also in ((other, []), (other, [own.uuid]), (own, [other.uuid])):
        answer = client.post(flag_path(flag), {"reason": "Looked.", "also": also})
        assert answer.status_code == 403
        assert BROUGHT_EVIDENCE.replace("'", "&#x27;") in answer.content.decode()
    assert not FlagClosing.objects.exists()

    assert visit(client, cast.second_reviewer, flag_path(other)).why_not == ""
    assert client.post(flag_path(other), {"reason": "Looked."}).status_code == 302


# ---- the list ----


def two_systems_of_flags(cast: Cast) -> dict[str, Flag]:
    ingest(
        cast.system,
        [record("t1", 0), record("t1", 1, verdicts=[verdict(evidence=[{"step": 99}])])],
    )
    ingest(
        cast.system,
        [
            record("t2", 2, verdicts=[verdict("fail", score=1)]),
            record("t2", 3, error="broke"),
        ],
        release="2.0",
    )
    person = flagged(cast, cast.viewer)
    closed = flagged(cast, cast.engineer, label="2")
    close_flag(closed, reason="Looked.", by=cast.reviewer, now=timezone.now())
    ingest(cast.other_system, [record("t1", 0, verdicts=[verdict(evidence=[{"step": 99}])])])
    names = {flag.code: flag for flag in Flag.objects.filter(system=cast.system, by=None)}
    return {**names, "person": person, "closed": closed}


def shown_flags(page: Any) -> list[str]:
    return [row.note.href.split("/")[-2] for row in page.rows]


def test_the_list_shows_what_is_flagged_why_and_by_whom(client: Client, cast: Cast) -> None:
    two_systems_of_flags(cast)

    page = visit(client, cast.viewer, flags_path(cast.system), state="all")

    assert [
        (
            row.note.why,
            row.task.label,
            row.trial.label,
            row.release.label,
            row.disposition.state,
            row.note.by,
            row.note.closed_by,
        )
        for row in page.rows
    ] == [
        ("Flagged by a person", "t2", "2", "2.0", "fail", "engineer", "reviewer"),
        ("Flagged by a person", "t1", "0", "1.0", "pass", "viewer", ""),
        ("A pass, but the harness broke", "t2", "3", "2.0", "harness-error", "the product", ""),
        ("A verdict contradicts its own score", "t2", "2", "2.0", "fail", "the product", ""),
        (
            "A verdict cites a step that does not exist",
            "t1",
            "1",
            "1.0",
            "pass",
            "the product",
            "",
        ),
    ]


def test_the_list_is_filtered(client: Client, cast: Cast) -> None:
    flags = two_systems_of_flags(cast)
    release = trial_of(cast.system, "2").release.uuid
    task = trial_of(cast.system, "0").task.uuid
    trial = trial_of(cast.system, "2").uuid
    person, missing = flags["person"], flags["cited-step-missing"]
    score, broken = flags["verdict-against-score"], flags["error-status-with-pass"]
    asked: list[tuple[dict[str, str], list[Flag]]] = [
        ({}, [person, broken, score, missing]),
        ({"state": "closed"}, [flags["closed"]]),
        ({"state": "all", "why": "person"}, [flags["closed"], person]),
        ({"why": "cited-step-missing"}, [missing]),
        ({"passing": "1"}, [person, missing]),
        ({"release": str(release)}, [broken, score]),
        ({"release": str(release), "state": "all"}, [flags["closed"], broken, score]),
        ({"task": str(task)}, [person, missing]),
        ({"trial": str(trial), "state": "all"}, [flags["closed"], score]),
        ({"release": str(release), "passing": "1"}, []),
    ]
    for query, expected in asked:
        page = visit(client, cast.viewer, flags_path(cast.system), **query)
        assert shown_flags(page) == [str(flag.uuid) for flag in expected], query
        assert bool(page.clear_url) is bool(set(query) - {"state"}), query


def test_counts_stand_beside_states_and_reasons(client: Client, cast: Cast) -> None:
    two_systems_of_flags(cast)

    page = visit(client, cast.viewer, flags_path(cast.system))
    assert [(c.label, c.count, c.is_current) for c in page.states] == [
        ("Open", 4, True),
        ("Closed", 1, False),
        ("All", 5, False),
    ]
    assert [option.label for option in page.reasons] == [
        "Any reason",
        "Flagged by a person (1)",
        "A check that is not mandatory failed (0)",
        "A verdict cites a step that does not exist (1)",
        "A verdict contradicts its own score (1)",
        "A pass, but the agent took no step (0)",
        "A pass, but the harness broke (1)",
        "A person's verdict came in a file (0)",
        "A verdict names a criterion that the contract does not have (0)",
    ]
    page = visit(client, cast.viewer, flags_path(cast.system), why="person", passing="1")
    assert [c.count for c in page.states] == [1, 0, 1]
    assert [c.href for c in page.states] == [
        f"{flags_path(cast.system)}?why=person&passing=1",
        f"{flags_path(cast.system)}?why=person&passing=1&state=closed",
        f"{flags_path(cast.system)}?why=person&passing=1&state=all",
    ]


@pytest.mark.parametrize(
    "query",
    [
        {"state": "x"},
        {"why": "unreadable-verdict"},
        {"after": "9" * 40},
        {"before": "-1"},
        {"passing": "\x00"},
        {"release": "\x00"},
        {"task": "zzz"},
        {"trial": str(uuid.UUID(int=1))},
    ],
    ids=str,
)
def test_nonsense_in_the_address_harms_nothing(
    query: dict[str, str], client: Client, cast: Cast
) -> None:
    two_systems_of_flags(cast)

    page = visit(client, cast.viewer, flags_path(cast.system), **query)

    names = {"release", "task", "trial"}
    assert len(page.rows) == (0 if names & set(query) else 4)


def test_the_list_comes_in_pages(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    flags = [str(flagged(cast, cast.viewer, f"Flag {n}.").uuid) for n in range(120)][::-1]

    first = visit(client, cast.viewer, f"{flags_path(cast.system)}?why=person")
    second = visit(client, cast.viewer, first.pager.next_url)
    third = visit(client, cast.viewer, second.pager.next_url)
    back = visit(client, cast.viewer, third.pager.previous_url)

    assert shown_flags(first) + shown_flags(second) + shown_flags(third) == flags
    assert [len(page.rows) for page in (first, second, third)] == [50, 50, 20]
    assert (first.pager.previous_url, third.pager.next_url) == ("", "")
    assert shown_flags(back) == shown_flags(second)
    assert "why=person" in first.pager.next_url


def test_an_empty_list_says_what_to_do(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    path = flags_path(cast.system)
    headings = {
        str(query): visit(client, cast.viewer, path, **query).empty.heading
        for query in ({}, {"state": "closed"}, {"state": "all"}, {"passing": "1"})
    }

    assert headings == {
        "{}": "No open flag",
        "{'state': 'closed'}": "No closed flag",
        "{'state': 'all'}": "No flag yet",
        "{'passing': '1'}": "No flag is like that",
    }


# ---- the trial's page ----


def test_open_flags_replace_notices_and_closed_ones_are_folded(client: Client, cast: Cast) -> None:
    given = [verdict(evidence=[{"step": 99}]), verdict("pass", criterion="s", score=0)]
    ingest(cast.system, [record("t1", 0, verdicts=given)])
    flagged(cast, cast.viewer, "Odd.")
    path = f"{root(cast.system)}trials/{trial_of(cast.system).uuid}/"
    page = visit(client, cast.viewer, path)
    assert [flag.reason for flag in page.flags] == [
        "Odd.",
        "state check cites step 99; the transcript has 4 steps.",
        "state check says pass with a score of 0.",
    ]
    assert (page.notices, page.closed_flags, page.more_flags) == ((), (), None)

    for flag in Flag.objects.exclude(code="verdict-against-score"):
        close_flag(flag, reason="Looked.", by=cast.reviewer, now=timezone.now())

    page = visit(client, cast.viewer, path)
    assert [flag.why for flag in page.flags] == ["A verdict contradicts its own score"]
    assert [(f.why, f.closed_by, f.closing_reason) for f in page.closed_flags] == [
        ("A verdict cites a step that does not exist", "reviewer", "Looked."),
        ("Flagged by a person", "reviewer", "Looked."),
    ]
    assert page.notices == ()


def test_many_flags_of_a_trial_are_linked_to_in_the_list(client: Client, cast: Cast) -> None:
    given = [verdict(criterion=f"c{n}", score=0) for n in range(9)]
    ingest(cast.system, [record("t1", 0, verdicts=given)])
    trial = trial_of(cast.system)

    page = visit(client, cast.viewer, f"{root(cast.system)}trials/{trial.uuid}/", step="2")

    assert len(page.flags) == 6
    assert page.more_flags.label == "3 more open flags on this trial"
    assert page.more_flags.href == f"{flags_path(cast.system)}?trial={trial.uuid}"
    assert page.flag_url == f"{form_path(trial)}?step=2"
    assert len(visit(client, cast.viewer, page.more_flags.href).rows) == 9


# ---- everywhere ----


def test_hostile_text_is_shown_as_text(client: Client, cast: Cast) -> None:
    cast.viewer.first_name = HOSTILE[:28]
    cast.viewer.save()
    bad = verdict(grader=HOSTILE, criterion=HOSTILE, score=0)
    ingest(cast.system, [record(HOSTILE, HOSTILE, verdicts=[bad])])
    trial = Trial.objects.get()
    flag = flag_trial(trial, reason=HOSTILE, by=cast.viewer, now=timezone.now())
    other = flag_trial(trial, reason=HOSTILE, by=cast.viewer, now=timezone.now())
    closed = flag_trial(trial, reason=HOSTILE, by=cast.viewer, now=timezone.now())
    close_flag(closed, reason=HOSTILE, by=cast.viewer, now=timezone.now())
    client.force_login(cast.viewer)
    for path in (
        f"{flags_path(cast.system)}?state=all",
        f"{flags_path(cast.system)}?trial={trial.uuid}",
        f"{flags_path(cast.system)}?task={trial.task.uuid}",
        f"{root(cast.system)}trials/{trial.uuid}/",
        form_path(trial),
        flag_path(flag),
        flag_path(other),
        flag_path(closed),
        flag_path(Flag.objects.get(by=None)),
    ):
        content = client.get(path).content.decode()
        assert "<img src=x" not in content, path
        assert "&lt;img src=x onerror=alert(1)&gt;" in content, path
        assert "\u202e" not in content, path


def test_query_counts_do_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    one = flagged(cast, cast.viewer)
    client.force_login(cast.reviewer)
    paths = [flags_path(cast.system), flag_path(one), form_path(one.trial)]
    with_one = [n_queries(client, path) for path in paths]
    given = [verdict(criterion=f"c{n}", score=0) for n in range(3)]
    ingest(cast.system, [record("t2", n, verdicts=given) for n in range(1, 4)], release="2.0")
    for _ in range(2):
        flagged(cast, cast.engineer)
        flagged(cast, cast.engineer, label="1")
    assert len(visit(client, cast.reviewer, flag_path(one)).others) == 2

    assert with_one == [n_queries(client, path) for path in paths] == [7, 9, 6]
