"""What a change would do, proposing it, and the page of a version with its decision and work."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from evalsite.rules_reach import work_out_preview
from evalsite.rules_work import recompute
from tests.support.cast import Cast, person
from tests.support.evidence import ingest, record
from tests.support.rules import NOW, approved, drafted, in_force, proposed
from tests.support.visits import n_queries, root, visit
from traces.core.paths import PathLevel
from traces.core.rule_changes import RuleChange, RulePlace
from traces.core.rule_effects import (
    CHANGING_LEVELS,
    LevelCount,
    Regrouping,
    RulesEffect,
    TaskEffect,
)
from traces.core.rules import ArgumentRule, Arithmetic, Ignore
from traces.core.trajectory import ToolKind
from traces.models import (
    Role,
    RulesDecision,
    RulesJob,
    RulesPreview,
    RulesVersion,
    System,
    Task,
    User,
    WorkState,
)
from traces.services.people import set_member
from traces.services.rules import start_preview, stop_work, withdraw_rules
from traces.web.addresses import Addresses
from traces.web.pages import ChangeLine
from traces.web.rule_rows import effect_headline, effect_view

pytestmark = pytest.mark.django_db

SUM = ArgumentRule("calculate", "expression", Arithmetic(), "Spellings of one sum.", "ada")
ADD = RuleChange(put=(SUM,))
KIND = RuleChange(kinds=(("calculate", ToolKind.READ),))
SPELLINGS = ("1200", "600 * 2", "2 * 600", "(600 + 600)")


def article() -> list[dict[str, Any]]:
    """Ten passing trials: four sequences, seven trajectories, four spellings of 1200."""
    order, pay = ("get_order", {"order": "A-1"}), ("pay", {"amount": 1200})
    ways = [
        *([order, ("calculate", {"expression": text}), pay] for text in SPELLINGS),
        [order, pay],
        [pay, order],
        [pay],
    ]
    return [record("t1", n, calls=ways[n % len(ways)]) for n in range(10)]


def previewed(cast: Cast, change: RuleChange = ADD) -> RulesPreview:
    """A preview that is worked out."""
    preview = start_preview(cast.system, change, by=cast.engineer, now=NOW)
    work_out_preview(preview.pk)
    preview.refresh_from_db()
    return preview


def preview_url(preview: RulesPreview) -> str:
    return f"{root(preview.system)}rules/previews/{preview.uuid}/"


def version_url(system: System, number: int, act: str = "") -> str:
    return f"{root(system)}rules/versions/{number}/{act}"


def refused(answer: Any) -> str:
    """The sentence of an act that was refused, with the form."""
    assert answer.status_code == 422
    return str(answer.context["page"].error)


# Previews


def test_a_preview_says_what_the_pages_will_show(client: Client, cast: Cast) -> None:
    ingest(cast.system, article())
    preview = previewed(cast)
    page = visit(client, cast.engineer, preview_url(preview))

    assert page.heading == "7 paths become 4 in 1 task at Equivalent"
    assert page.changes == (
        ChangeLine(
            "New rule: calculate.expression: expressions with the same value are equal.",
            "Spellings of one sum.",
        ),
    )
    assert (page.effect.nothing, page.effect.is_past) == ("", False)
    assert page.effect.words == "10 passing trials of 1 task, all releases and versions together."
    assert [(row.level, row.n_before, row.n_after, row.difference) for row in page.effect.levels][
        2
    ] == ("Equivalent", 7, 4, "-3")
    (task,) = page.effect.tasks
    assert task.task.label == "t1"
    assert "Equivalent 7 to 4" in task.counts
    words = [(each.words, each.level, each.trials, each.sentences) for each in task.regroupings]
    assert (
        "4 paths become 1",
        "Equivalent",
        "2 + 2 + 2 + 1 → 7",
        ("calculate.expression: 4 spellings, all 1200",),
    ) in words

    proposed_at = client.post(f"{preview_url(preview)}propose", {"reason": "One sum."})
    assert proposed_at["Location"] == version_url(cast.system, 2)
    version = RulesVersion.objects.get(number=2)
    client.force_login(cast.owner)
    client.post(version_url(cast.system, 2, "decide"), {"outcome": "approved", "reason": "Yes."})
    assert recompute(version.pk)
    after = visit(client, cast.viewer, f"{root(cast.system)}tasks/", level="equivalent")
    assert [row.n_paths for row in after.rows] == [4]
    shown = visit(client, cast.viewer, version_url(cast.system, 2)).effect
    assert shown == replace(page.effect, is_past=True)


def test_a_preview_that_waits_shows_how_far_it_is(client: Client, cast: Cast) -> None:
    preview = start_preview(cast.system, ADD, by=cast.engineer, now=NOW)
    waiting = visit(client, cast.engineer, preview_url(preview))
    RulesPreview.objects.update(state="working", n_done=1_200, n_total=20_000)
    working = visit(client, cast.engineer, preview_url(preview))
    RulesPreview.objects.update(state="working", n_done=0, n_total=None)
    uncounted = visit(client, cast.engineer, preview_url(preview))
    RulesPreview.objects.update(state="failed", failure="It took too long.")
    failed = visit(client, cast.engineer, preview_url(preview))

    assert (waiting.heading, waiting.work.sentence, waiting.poll_url) == (
        "What would this change do?",
        "It waits for a worker.",
        preview_url(preview),
    )
    assert (working.work.percent, working.work.sentence) == (
        6,
        "1,200 of 20,000 trajectories read.",
    )
    assert (uncounted.work.percent, uncounted.work.sentence) == (
        None,
        "The stored paths are being read.",
    )
    assert (failed.heading, failed.work.failure, failed.poll_url, failed.again_label) == (
        "The preview could not be worked out",
        "It took too long.",
        "",
        "Preview it again",
    )
    assert [page.form for page in (waiting, working, failed)] == [None] * 3
    assert failed.why_not == "What this change does is not worked out yet."


def test_a_preview_asks_again_until_it_is_there(client: Client, cast: Cast) -> None:
    preview = start_preview(cast.system, ADD, by=cast.engineer, now=NOW)
    client.force_login(cast.engineer)
    asks = {"HX-Request": "true", "HX-Target": "rules-moving"}
    waiting = client.get(preview_url(preview), headers=asks)
    work_out_preview(preview.pk)
    done = client.get(preview_url(preview), headers=asks)

    assert 'hx-trigger="every 1s"' in waiting.content.decode()
    assert done["HX-Refresh"] == "true"
    assert "hx-trigger" not in client.get(preview_url(preview)).content.decode()


def test_an_effect_of_another_version_of_the_product_is_made_again(
    client: Client, cast: Cast
) -> None:
    preview = previewed(cast)
    RulesPreview.objects.update(result={"version": 0})
    page = visit(client, cast.engineer, preview_url(preview))
    assert page.work.failure.startswith("Another version of the product made this preview.")
    assert (page.effect, page.again_label) == (None, "Preview it again")


def test_whose_draft_it_is_decides_what_one_may_do(client: Client, cast: Cast) -> None:
    preview = previewed(cast)
    other = person("other")
    set_member(cast.system, other, Role.ENGINEER)
    mine = visit(client, cast.engineer, preview_url(preview))
    theirs = visit(client, other, preview_url(preview))
    viewed = visit(client, cast.viewer, preview_url(preview))

    assert (mine.why_not, mine.again_label, mine.form is not None) == ("", "", True)
    assert mine.edit_url.startswith(f"{root(cast.system)}rules/edit/?rule=")
    assert (theirs.why_not, theirs.again_label, theirs.form) == (
        "This preview is a draft of engineer; make one of your own.",
        "Make a preview of my own",
        None,
    )
    assert (viewed.form, viewed.edit_url, viewed.again_action) == (None, "", "")
    assert viewed.why_not.startswith("Only an engineer of this system")


@pytest.mark.parametrize(
    ("change", "edit"),
    [
        (ADD, "?rule="),
        (KIND, "?what=kinds"),
        (RuleChange(put=(SUM,), kinds=KIND.kinds), ""),
    ],
    ids=["rule", "kinds", "both"],
)
def test_a_change_can_be_changed(change: RuleChange, edit: str, client: Client, cast: Cast) -> None:
    page = visit(client, cast.engineer, preview_url(previewed(cast, change)))
    assert edit in page.edit_url
    assert bool(page.edit_url) == bool(edit)
    if page.edit_url:
        visit(client, cast.engineer, page.edit_url)


def test_an_overtaken_preview_is_made_anew(client: Client, cast: Cast) -> None:
    preview = previewed(cast)
    approved(cast, KIND)
    page = visit(client, cast.engineer, preview_url(preview))
    sentence = (
        "Version 2 was approved meanwhile, and this change was made on version 1: "
        "preview it again on version 2."
    )

    assert (page.why_not, page.again_label) == (sentence, "Preview it on version 2")
    answer = client.post(f"{preview_url(preview)}propose", {"reason": "why"})
    assert refused(answer) == sentence
    again = client.post(page.again_action, {field.name: field.value for field in page.again_hidden})
    assert again.status_code == 302


def test_a_proposal_needs_a_reason_and_is_made_once(client: Client, cast: Cast) -> None:
    preview = previewed(cast)
    client.force_login(cast.engineer)
    without = client.post(f"{preview_url(preview)}propose", {"reason": " "})
    assert without.status_code == 422
    assert "Say why, in a sentence." in without.content.decode()
    assert client.post(f"{preview_url(preview)}propose", {"reason": "x"}).status_code == 302
    twice = client.post(f"{preview_url(preview)}propose", {"reason": "x"})
    page = visit(client, cast.engineer, preview_url(preview))

    assert refused(twice) == "This change is proposed already, as version 2."
    assert (page.proposed.label, page.again_label) == ("Version 2", "")
    assert RulesVersion.objects.filter(system=cast.system).count() == 2


def test_query_count_of_a_preview_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, article())
    preview = previewed(cast)
    client.force_login(cast.engineer)
    one = n_queries(client, preview_url(preview))
    more = [{**each, "task_id": task} for each in article() for task in ("t2", "t3", "t4")]
    ingest(cast.system, more)
    larger = previewed(cast, RuleChange(put=(SUM,), kinds=KIND.kinds))
    assert len(visit(client, cast.engineer, preview_url(larger)).effect.tasks) == 4
    assert (one, n_queries(client, preview_url(larger))) == (9, 9)


# The effect in words


def effect_of(*counts: tuple[int, int], tasks: int = 1, listed: int | None = None) -> RulesEffect:
    """An effect whose listed tasks share these counts, given in the order of levels."""
    levels = tuple(
        LevelCount(level, messages, *count)
        for (level, messages), count in zip(CHANGING_LEVELS, counts, strict=True)
    )
    n_listed = tasks if listed is None else listed
    one = TaskEffect("t", uuid.UUID(int=1), levels, 0, ())
    total = tuple(
        LevelCount(each.level, each.messages, each.n_before * tasks, each.n_after * tasks)
        for each in levels
    )
    return RulesEffect(total, 10, 5, tasks, (one,) * n_listed)


SAME = ((3, 3),) * 5


@pytest.mark.parametrize(
    ("effect", "headline"),
    [
        (effect_of(*SAME, tasks=0), "No passing path changes"),
        (effect_of(*SAME[:3], (7, 4), (8, 5)), "7 paths become 4 in 1 task at Equivalent"),
        (effect_of(*SAME[:3], (1, 2), (1, 2)), "1 path becomes 2 in 1 task at Equivalent"),
        (
            effect_of((5, 4), (6, 5), (6, 6), (3, 3), (3, 3), tasks=2),
            "12 paths become 10 in 2 tasks at Reads in any order",
        ),
        (effect_of((5, 4), *SAME[1:]), "5 paths become 4 in 1 task at Effects"),
        (
            effect_of(*SAME[:4], (5, 4)),
            "5 paths become 4 in 1 task at Equivalent, with agent messages",
        ),
        (
            effect_of(*SAME[:3], (7, 4), (7, 4), tasks=300, listed=200),
            "2,100 paths of all tasks become 1,200 at Equivalent; 300 tasks change",
        ),
        (effect_of(*SAME), "Paths are grouped anew in 1 task; their number stays"),
    ],
    ids=["none", "merge", "split", "reads", "effects", "messages", "many", "regrouped"],
)
def test_a_headline_says_what_a_change_does(effect: RulesEffect, headline: str) -> None:
    assert effect_headline(effect) == headline


def test_a_long_effect_is_cut_and_says_so() -> None:
    regrouping = Regrouping(PathLevel.EFFECTS, 15, 1, (2,) * 12, (30,), 30, ())
    many = effect_of(*SAME, tasks=300, listed=200)
    task = TaskEffect("t", uuid.UUID(int=1), many.tasks[0].levels, 9, (regrouping,))
    view = effect_view(
        RulesEffect(many.levels, 10, 5, 300, (task, *many.tasks[1:])), ADD, Addresses("/systems/a/")
    )
    row = view.tasks[0]

    assert (len(view.tasks), view.n_more_tasks) == (50, 250)
    assert (row.counts, row.n_more) == ("with agent messages only", 8)
    assert row.regroupings[0].words == "15 paths become 1"
    assert row.regroupings[0].trials == f"{' + '.join(['2'] * 12)} + … → 30"


@pytest.mark.parametrize(("n", "times"), [(1, ""), (2, "twice"), (3, "3 times")])
def test_examples_that_read_alike_are_one(n: int, times: str) -> None:
    pair = Regrouping(PathLevel.EQUIVALENT, 2, 1, (1, 1), (2,), 2, ("a.b: 2 spellings",))
    other = Regrouping(PathLevel.EQUIVALENT, 2, 1, (1, 1), (2,), 2, ())
    levels = effect_of(*SAME).levels
    task = TaskEffect("t", uuid.UUID(int=1), levels, n + 4, (pair, other, *(pair,) * (n - 1)))
    view = effect_view(RulesEffect(levels, 10, 5, 1, (task,)), ADD, Addresses("/systems/a/"))
    row = view.tasks[0]

    assert [(each.words, each.sentences, each.times) for each in row.regroupings] == [
        ("2 paths become 1", pair.sentences, times),
        ("2 paths become 1", (), ""),
    ]
    assert row.n_more == 3


@pytest.mark.parametrize(
    ("change", "n_trials", "words"),
    [
        (ADD, 10, "No path merges or splits. Where two values become equal, their paths still "),
        (KIND, 10, "No path merges or splits."),
        (ADD, 0, "No trial has passed yet, so there is no path to merge or split."),
    ],
    ids=["rule", "kind", "none-passed"],
)
def test_a_change_without_effect_says_why(change: RuleChange, n_trials: int, words: str) -> None:
    effect = RulesEffect(effect_of(*SAME).levels, n_trials, min(n_trials, 5), 0, ())
    nothing = effect_view(effect, change, Addresses("/systems/a/")).nothing
    assert nothing.startswith(words)
    assert (nothing == words) == (change is KIND or not n_trials)


def test_two_values_whose_paths_differ_otherwise_merge_nothing(client: Client, cast: Cast) -> None:
    calls = ("calculate", {"expression": "1200"}), ("calculate", {"expression": "2 * 600"})
    ingest(
        cast.system,
        [record("t1", 0, calls=[calls[0]]), record("t1", 1, calls=[calls[1], calls[0]])],
    )
    preview = previewed(cast)
    page = visit(client, cast.engineer, preview_url(preview))
    shown = client.get(preview_url(preview)).content.decode()

    assert page.heading == "No passing path changes"
    assert page.effect.nothing in shown
    assert "their paths still differ in something else" in shown


# Versions


def test_a_proposed_version_shows_each_person_what_they_may_do(client: Client, cast: Cast) -> None:
    proposed(cast, ADD)
    url = version_url(cast.system, 2)
    engineer = visit(client, cast.engineer, url)
    viewer = visit(client, cast.viewer, url)
    owner = visit(client, cast.owner, url)
    only = "Only a reviewer or an owner of this system decides on proposed rules and contracts."

    assert (engineer.heading, engineer.badge.label) == ("Rules version 2 is proposed", "proposed")
    assert engineer.sentence == "You proposed this version; somebody else decides on it."
    assert viewer.sentence == "It waits for a reviewer or an owner who did not propose it."
    assert [page.decide_refusal for page in (engineer, viewer, owner)] == [only, only, ""]
    assert [page.withdraw is not None for page in (engineer, viewer, owner)] == [True, False, False]
    text = client.get(url).content.decode()
    assert 'name="outcome" value="approved"' in text
    client.force_login(cast.viewer)
    disabled = client.get(url).content.decode()
    assert disabled.count(f'disabled aria-describedby="why-not-decide" title="{only}"') == 2
    assert f'id="why-not-decide">{only}' in disabled


def _brought_evidence(cast: Cast) -> User:
    ingest(cast.system, [record("t1", 0)], by=cast.reviewer)
    return cast.reviewer


def _own_proposal(cast: Cast) -> User:
    set_member(cast.system, cast.engineer, Role.OWNER)
    return cast.engineer


@pytest.mark.parametrize(
    ("who", "sentence"),
    [
        pytest.param(
            _brought_evidence,
            "You uploaded evidence of this system or declared a run of it; somebody who did "
            "neither decides on its rules.",
            id="evidence",
        ),
        pytest.param(
            _own_proposal,
            "You proposed this version; somebody else decides on it.",
            id="own",
        ),
    ],
)
def test_page_and_act_refuse_with_the_same_sentence(
    who: Callable[[Cast], User], sentence: str, client: Client, cast: Cast
) -> None:
    proposed(cast, ADD)
    user = who(cast)
    page = visit(client, user, version_url(cast.system, 2))
    answer = client.post(
        version_url(cast.system, 2, "decide"), {"outcome": "approved", "reason": "yes"}
    )

    assert page.decide_refusal == sentence
    assert refused(answer) == sentence
    assert RulesDecision.objects.count() == 0


@pytest.mark.parametrize("who", ["reviewer", "owner"])
def test_approving_asks_for_the_work_and_says_so(who: str, client: Client, cast: Cast) -> None:
    version = proposed(cast, ADD)
    user = getattr(cast, who)
    client.force_login(user)
    answer = client.post(
        version_url(cast.system, 2, "decide"), {"outcome": "approved", "reason": "Agreed."}
    )
    page = visit(client, user, answer["Location"])

    assert answer["Location"] == version_url(cast.system, 2)
    assert (page.heading, page.badge.label) == (
        "Rules version 2 is approved",
        "waiting for a worker",
    )
    assert page.sentence.startswith(f"Approved by {who}, ")
    assert page.sentence.endswith("Pages show it as soon as all paths are worked out.")
    assert (page.work.heading, page.work.may_stop, page.poll_url) == (
        "Version 2 waits for a worker",
        True,
        version_url(cast.system, 2),
    )
    assert (page.decide, page.withdraw) == (None, None)
    recompute(version.pk)
    done = visit(client, user, answer["Location"])
    assert (done.heading, done.badge.label, done.work) == (
        "Rules version 2 is in force",
        "in force",
        None,
    )
    assert [fact.name for fact in done.facts][-2:] == ["Why", "Worked out in"]


def test_rejecting_leaves_everything_as_it_is(client: Client, cast: Cast) -> None:
    proposed(cast, ADD)
    client.force_login(cast.reviewer)
    client.post(version_url(cast.system, 2, "decide"), {"outcome": "rejected", "reason": "No."})
    page = visit(client, cast.reviewer, version_url(cast.system, 2))

    assert (page.heading, page.badge.label, page.work, page.back) == (
        "Rules version 2 was rejected",
        "rejected",
        None,
        (),
    )
    assert ("Why", "No.") in [(fact.name, fact.value) for fact in page.facts]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"outcome": "approved"}, "reason"),
        ({"outcome": "approved", "reason": "  "}, "reason"),
        ({"reason": "yes"}, "outcome"),
        ({"outcome": "withdrawn", "reason": "yes"}, "outcome"),
        ({"outcome": "approved", "reason": "x" * 4_001}, "reason"),
    ],
    ids=["none", "blank", "no-outcome", "withdrawn", "long"],
)
def test_a_decision_needs_an_outcome_and_a_reason(
    fields: dict[str, str], field: str, client: Client, cast: Cast
) -> None:
    proposed(cast, ADD)
    client.force_login(cast.owner)
    answer = client.post(version_url(cast.system, 2, "decide"), fields)

    assert answer.status_code == 422
    assert list(answer.context["page"].decide.errors) == [field]
    assert RulesDecision.objects.count() == 0


def test_a_version_is_decided_once(client: Client, cast: Cast) -> None:
    approved(cast, ADD)
    client.force_login(cast.owner)
    answer = client.post(
        version_url(cast.system, 2, "decide"), {"outcome": "rejected", "reason": "no"}
    )
    assert refused(answer) == "Version 2 was approved by reviewer."


def test_a_proposal_is_withdrawn_with_a_reason(client: Client, cast: Cast) -> None:
    proposed(cast, ADD)
    client.force_login(cast.engineer)
    without = client.post(version_url(cast.system, 2, "withdraw"), {})
    assert without.status_code == 422
    assert list(without.context["page"].withdraw.errors) == ["reason"]
    answer = client.post(version_url(cast.system, 2, "withdraw"), {"reason": "A slip."})
    page = visit(client, cast.engineer, answer["Location"])
    again = client.post(version_url(cast.system, 2, "withdraw"), {"reason": "A slip."})

    assert (page.heading, page.badge.label, page.withdraw) == (
        "Rules version 2 was withdrawn",
        "withdrawn",
        None,
    )
    assert refused(again) == "Version 2 was withdrawn by engineer."


def test_only_whoever_proposed_it_withdraws_it(client: Client, cast: Cast) -> None:
    proposed(cast, ADD)
    other = person("other")
    set_member(cast.system, other, Role.ENGINEER)
    client.force_login(other)
    answer = client.post(version_url(cast.system, 2, "withdraw"), {"reason": "x"})
    assert refused(answer) == "Only the person who proposed a version withdraws it."


def test_an_overtaken_proposal_can_be_rejected_and_not_approved(client: Client, cast: Cast) -> None:
    proposed(cast, ADD)
    approved(cast, KIND)
    url = version_url(cast.system, 2)
    engineer = visit(client, cast.engineer, url)
    owner = visit(client, cast.owner, url)
    sentence = (
        "Version 3 was approved meanwhile, and this change was made on version 1: "
        "preview it again on version 3."
    )

    assert [notice.sentence for notice in owner.notices] == [sentence]
    assert (owner.decide_refusal, owner.approve_refusal, owner.again) == ("", sentence, ())
    assert [(field.name, field.value) for field in engineer.again] == [
        ("what", "again"),
        ("number", "2"),
    ]
    text = client.get(url).content.decode()
    assert 'value="approved" disabled' in text
    answer = client.post(f"{url}decide", {"outcome": "approved", "reason": "yes"})
    assert refused(answer) == sentence
    assert client.post(f"{url}decide", {"outcome": "rejected", "reason": "no"}).status_code == 302


def test_work_is_stopped_and_taken_up_again(client: Client, cast: Cast) -> None:
    version = approved(cast, ADD)
    url = version_url(cast.system, 2)
    client.force_login(cast.engineer)
    assert client.post(f"{url}work", {"act": "stop"})["Location"] == url
    stopped = visit(client, cast.engineer, url)
    twice = client.post(f"{url}work", {"act": "stop"})
    assert client.post(f"{url}work", {"act": "restart"})["Location"] == url
    again = visit(client, cast.engineer, url)

    assert (stopped.badge.label, stopped.work.may_restart) == ("stopped", True)
    assert stopped.work.sentence == (
        "Stopped by engineer, nothing worked out yet. Pages still show version 1."
    )
    assert refused(twice) == "Nobody works on version 2."
    assert (again.badge.label, again.work.may_stop) == ("waiting for a worker", True)
    assert RulesJob.objects.get(rules=version).state == WorkState.WAITING.value


def test_work_that_is_not_there_cannot_be_moved(client: Client, cast: Cast) -> None:
    proposed(cast, ADD)
    approved(cast, KIND)
    client.force_login(cast.owner)

    def answer(number: int, act: str) -> str:
        return refused(client.post(version_url(cast.system, number, "work"), {"act": act}))

    assert answer(1, "stop") == "Nobody works on version 1."
    assert answer(2, "restart") == "Nobody works on version 2."
    assert answer(3, "restart") == "The work on version 3 has not stopped."
    assert answer(3, "dance") == "Say whether to stop or to restart the work."


def test_stopped_work_that_was_overtaken_is_not_taken_up(client: Client, cast: Cast) -> None:
    stop_work(approved(cast, ADD), by=cast.owner, now=NOW)
    in_force(cast, KIND)
    page = visit(client, cast.owner, version_url(cast.system, 2))

    assert (page.heading, page.badge.label, page.work.may_restart) == (
        "Rules version 2 was approved and never in force",
        "overtaken",
        False,
    )


def test_a_long_reason_of_a_rule_is_cut(client: Client, cast: Cast) -> None:
    long = ArgumentRule("a", "b", Ignore(), "<b>" + "x" * 3_000, "ada")
    proposed(cast, RuleChange(put=(SUM, long), kinds=KIND.kinds))
    page = visit(client, cast.reviewer, version_url(cast.system, 2))
    shown = client.get(version_url(cast.system, 2)).content.decode()

    assert [line.reason for line in page.changes] == [
        "Spellings of one sum.",
        f"<b>{'x' * 996}…",
        "",
    ]
    assert shown.count("The rule's own reason:") == 2
    assert "&lt;b&gt;xxx" in shown


def test_the_effect_is_told_in_the_past_once_it_is_decided(client: Client, cast: Cast) -> None:
    ingest(cast.system, article())
    preview = previewed(cast)
    client.force_login(cast.engineer)
    client.post(f"{preview_url(preview)}propose", {"reason": "One sum."})
    pages = (version_url(cast.system, 2), preview_url(preview))
    columns = '<th scope="col" class="num">{}</th><th scope="col" class="num">{}</th>'
    for url in pages:
        assert columns.format("Now", "Then") in client.get(url).content.decode()

    client.force_login(cast.reviewer)
    client.post(version_url(cast.system, 2, "decide"), {"outcome": "approved", "reason": "Yes."})
    for url in pages:
        assert columns.format("Before", "After") in client.get(url).content.decode()


def test_a_version_shows_all_its_rules_and_kinds(client: Client, cast: Cast) -> None:
    rule = ArgumentRule("a", "b", Ignore(), "r", "x", "t1")
    in_force(cast, RuleChange(put=(SUM, rule), kinds=(("a", ToolKind.READ), ("b", ToolKind.READ))))
    page = visit(client, cast.viewer, version_url(cast.system, 2))
    first = visit(client, cast.viewer, version_url(cast.system, 1))

    assert page.rules == (
        "calculate.expression: expressions with the same value are equal.",
        "a.b: not compared. Only task t1.",
    )
    assert [(fact.name, fact.value) for fact in page.kinds] == [("reads", "a, b")]
    assert (first.changes, first.effect_words, first.sentence) == (
        (),
        "",
        "The system was made with it.",
    )


@pytest.mark.parametrize("number", ["0", "3", "9" * 30])
@pytest.mark.parametrize("act", ["", "decide", "withdraw", "work"])
def test_a_version_that_is_not_there_is_404(
    number: str, act: str, client: Client, cast: Cast
) -> None:
    proposed(cast, ADD)
    user = {"decide": cast.owner, "withdraw": cast.engineer}.get(act, cast.owner)
    client.force_login(user)
    path = f"{root(cast.system)}rules/versions/{number}/{act}"
    answer = client.post(path, {}) if act else client.get(path)
    assert answer.status_code == 404


def test_another_systems_preview_is_404(client: Client, cast: Cast) -> None:
    preview = drafted(cast, ADD)
    client.force_login(cast.outsider)
    for path in ("", "propose"):
        url = f"{root(cast.other_system)}rules/previews/{preview.uuid}/{path}"
        answer = client.post(url) if path else client.get(url)
        assert answer.status_code in (403, 404)


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "a\u202eb", "\x1b[31m"])
def test_hostile_text_in_rules_is_shown_as_text(text: str, client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [record(text, n, calls=((text, {text: f"{text} {n}"}),)) for n in range(3)],
    )
    rule = ArgumentRule(text, text, Ignore(), text, text, text)
    preview = previewed(cast, RuleChange(put=(rule,)))
    version = proposed(cast, RuleChange(put=(rule,)))
    withdraw_rules(version, reason=text, by=cast.engineer, now=NOW)
    client.force_login(cast.engineer)
    for url in (preview_url(preview), version_url(cast.system, version.number)):
        shown = client.get(url).content.decode()
        assert "<script>alert" not in shown
        assert "\u202e" not in shown
        assert "\x1b" not in shown
    assert Task.objects.count() == 1


def test_query_count_of_a_version_does_not_grow(client: Client, cast: Cast) -> None:
    proposed(cast, ADD)
    client.force_login(cast.owner)
    one = n_queries(client, version_url(cast.system, 2))
    rules = tuple(ArgumentRule(f"t{n}", "x", Ignore(), "r", "a") for n in range(3))
    proposed(cast, RuleChange(put=rules, kinds=(("a", ToolKind.READ), ("b", ToolKind.WRITE))))
    assert (one, n_queries(client, version_url(cast.system, 3))) == (17, 17)


def test_dropping_a_rule_brings_the_old_counts_back(client: Client, cast: Cast) -> None:
    ingest(cast.system, article())
    in_force(cast, ADD)
    preview = previewed(cast, RuleChange(drop=(RulePlace("calculate", "expression"),)))
    page = visit(client, cast.engineer, preview_url(preview))

    assert page.heading == "4 paths become 7 in 1 task at Equivalent"
    assert page.changes == (
        ChangeLine(
            "No longer a rule: calculate.expression: expressions with the same value are equal."
        ),
    )
