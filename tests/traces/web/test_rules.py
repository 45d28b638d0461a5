"""The page of rules: in force, proposed, suggested, and the history."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from evalsite.rules_reach import work_out_suggestions
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.rules import NOW, approved, drafted, in_force, proposed
from tests.support.visits import n_queries, root, visit
from traces.core.rule_changes import RuleChange, RulePlace
from traces.core.rules import ArgumentRule, Arithmetic, Ignore
from traces.core.trajectory import ToolKind
from traces.models import (
    RulesJob,
    RulesOutcome,
    RulesPreview,
    RulesSuggestions,
    System,
    User,
    WorkState,
)
from traces.selectors.rules_work import work_notice
from traces.services.rules import ask_suggestions, decide_rules, stop_work

pytestmark = pytest.mark.django_db

SUM = ArgumentRule("calculate", "expression", Arithmetic(), "Spellings of one sum.", "ada")
ADD = RuleChange(put=(SUM,))
NOISE = ArgumentRule("never_called", "x", Ignore(), "Free wording.", "ada", "t1")


def rules_url(system: System) -> str:
    return f"{root(system)}rules/"


def sums(*texts: str, task: str = "t1") -> list[dict[str, object]]:
    return [
        record(task, n, calls=(("calculate", {"expression": text}),))
        for n, text in enumerate(texts)
    ]


def searched(system: System) -> None:
    """Suggestions on the version in force, looked for at once."""
    work_out_suggestions(ask_suggestions(system, now=NOW).pk)


def test_a_new_system_has_no_rule_and_says_what_that_means(client: Client, cast: Cast) -> None:
    page = visit(client, cast.engineer, rules_url(cast.system))
    text = client.get(rules_url(cast.system)).content.decode()

    assert page.sentence == "Version 1 is in force: 0 argument rules and 0 tool kinds."
    assert (page.rules, page.tools, page.proposals, page.work) == ((), (), (), None)
    assert "No rule yet: arguments are compared exactly." in text
    assert "Tools come with the traces that use them." in text
    assert [(line.number, line.badge.label) for line in page.history] == [(1, "in force")]


def test_rules_in_force_say_why_by_whom_since_when_and_how_often(
    client: Client, cast: Cast
) -> None:
    ingest(cast.system, sums("2 * 600", "1200"))
    in_force(cast, ADD)
    in_force(cast, RuleChange(put=(NOISE,)))
    before = visit(client, cast.viewer, rules_url(cast.system))
    searched(cast.system)
    page = visit(client, cast.viewer, rules_url(cast.system))

    assert [row.use for row in before.rules] == ["not counted yet"] * 2
    assert [
        (row.name, row.sentence, row.scope, row.reason, row.author, row.since.label, row.use)
        for row in page.rules
    ] == [
        (
            "calculate.expression",
            "expressions with the same value are equal.",
            "",
            "Spellings of one sum.",
            "ada",
            "version 2",
            "applied to 2 distinct calls",
        ),
        (
            "never_called.x",
            "not compared.",
            "task t1 only",
            "Free wording.",
            "ada",
            "version 3",
            "never applied",
        ),
    ]
    assert [row.is_unused for row in page.rules] == [False, True]
    assert page.use_words.startswith("Use counted over all stored calls, ")
    assert {row.place for row in page.rules} == {""}


def test_tools_without_a_kind_come_first_and_count_as_write(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=(("zoom", {}), ("add", {"n": 1}), ("add", {})))])
    in_force(cast, RuleChange(kinds=(("add", ToolKind.READ), ("gone", ToolKind.HANDOFF))))
    page = visit(client, cast.engineer, rules_url(cast.system))

    assert [(row.name, row.kind, row.calls) for row in page.tools] == [
        ("zoom", "not set: counts as write", "1 distinct call"),
        ("add", "reads", "2 distinct calls"),
        ("gone", "hands over to a person", "in no stored trace"),
    ]
    assert (page.n_unset, page.tools_words) == (1, "1 tool of 2 without a kind")


def test_open_proposals_come_first_with_what_they_change(client: Client, cast: Cast) -> None:
    version = proposed(cast, ADD)
    page = visit(client, cast.reviewer, rules_url(cast.system))

    (line,) = page.proposals
    assert (line.number, line.badge.label, line.by, line.reason, line.changes) == (
        version.number,
        "proposed",
        "engineer",
        "a sum",
        ("New rule: calculate.expression: expressions with the same value are equal.",),
    )
    assert [each.number for each in page.history] == [2, 1]


def test_the_menu_counts_the_proposals_that_wait(client: Client, cast: Cast) -> None:
    def rules_item() -> tuple[int | None, str]:
        page = visit(client, cast.reviewer, f"{root(cast.system)}tasks/")
        items = [item for group in page.shell.nav for item in group.items]
        (item,) = (item for item in items if item.label == "Rules")
        return item.count, item.count_words

    assert rules_item() == (None, "")
    version = proposed(cast, ADD)
    assert rules_item() == (1, "proposal waits for a decision")
    proposed(cast, RuleChange(kinds=(("calculate", ToolKind.READ),)))
    assert rules_item() == (2, "proposals wait for a decision")
    shown = client.get(f"{root(cast.system)}uploads/").content.decode()
    assert '2<span class="visually-hidden"> proposals wait for a decision</span>' in shown

    other = visit(client, cast.outsider, f"{root(cast.other_system)}tasks/").shell
    assert all(item.count is None for group in other.nav for item in group.items)

    decide_rules(version, outcome=RulesOutcome.REJECTED, reason="No.", by=cast.reviewer, now=NOW)
    assert rules_item() == (1, "proposal waits for a decision")


def test_the_history_says_who_decided_and_why(client: Client, cast: Cast) -> None:
    in_force(cast, ADD)
    page = visit(client, cast.viewer, rules_url(cast.system))

    newest, first = page.history
    assert (newest.decision, newest.decision_reason, newest.badge.label) == (
        "approved by reviewer",
        "agreed",
        "in force",
    )
    assert (first.decision, first.badge.label, first.changes) == ("", "earlier", ())


def test_the_history_comes_in_pages(client: Client, cast: Cast) -> None:
    for number in range(22):
        proposed(cast, RuleChange(kinds=((f"tool {number}", ToolKind.READ),)))
    first = visit(client, cast.viewer, rules_url(cast.system))
    second = visit(client, cast.viewer, first.pager.next_url.removesuffix("#history"))
    back = visit(client, cast.viewer, second.pager.previous_url.removesuffix("#history"))

    assert [line.number for line in first.history] == list(range(23, 3, -1))
    assert [line.number for line in second.history] == [3, 2, 1]
    assert (second.pager.next_url, back.history) == ("", first.history)


def _waits(cast: Cast) -> None:
    approved(cast, ADD)


def _works(cast: Cast) -> None:
    version = approved(cast, ADD)
    RulesJob.objects.filter(rules=version).update(state="working", n_done=42, n_total=100)


def _is_counted_empty(cast: Cast) -> None:
    version = approved(cast, ADD)
    RulesJob.objects.filter(rules=version).update(state="working", n_done=0, n_total=0)


def _is_stopped(cast: Cast) -> None:
    stop_work(approved(cast, ADD), by=cast.owner, now=NOW)


def _failed(cast: Cast) -> None:
    version = approved(cast, ADD)
    RulesJob.objects.filter(rules=version).update(state="failed", failure="It did not end.")


STILL = "This page still shows version 1."


@pytest.mark.parametrize(
    ("make", "notice", "heading", "label", "percent", "is_moving"),
    [
        pytest.param(
            _waits,
            f"Rules version 2 waits to be worked out. {STILL}",
            "Version 2 waits for a worker",
            "waiting for a worker",
            None,
            True,
            id="waits",
        ),
        pytest.param(
            _works,
            f"Rules version 2 is being worked out: 42 %. {STILL}",
            "Version 2 is being worked out",
            "being worked out",
            42,
            True,
            id="works",
        ),
        pytest.param(
            _is_counted_empty,
            f"Rules version 2 is being worked out: 0 %. {STILL}",
            "Version 2 is being worked out",
            "being worked out",
            0,
            True,
            id="nothing-to-do",
        ),
        pytest.param(
            _is_stopped,
            f"The work on rules version 2 was stopped. {STILL}",
            "The work on version 2 was stopped",
            "stopped",
            None,
            False,
            id="stopped",
        ),
        pytest.param(
            _failed,
            f"Rules version 2 could not be worked out. {STILL}",
            "Version 2 could not be worked out",
            "failed",
            None,
            False,
            id="failed",
        ),
    ],
)
def test_work_on_a_version_is_shown_wherever_paths_are(
    make: Callable[[Cast], None],
    notice: str,
    heading: str,
    label: str,
    percent: int | None,
    is_moving: bool,
    client: Client,
    cast: Cast,
) -> None:
    ingest(cast.system, sums("2 * 600", "1200"))
    make(cast)
    page = visit(client, cast.owner, rules_url(cast.system))
    viewed = visit(client, cast.viewer, rules_url(cast.system))
    tasks = visit(client, cast.viewer, f"{root(cast.system)}tasks/")

    assert page.work is not None
    assert (page.work.heading, page.work.badge.label, page.work.percent) == (
        heading,
        label,
        percent,
    )
    assert (page.work.may_stop, page.work.may_restart) == (is_moving, not is_moving)
    assert (viewed.work.may_stop, viewed.work.may_restart) == (False, False)
    assert viewed.work.why_not == "A viewer does not stop or restart work on rules and contracts."
    assert [each.sentence for each in tasks.notices] == [notice]
    task = tasks.rows[0].href
    pages = (task, task.replace("?", "compare/?"))
    for path in pages:
        assert notice in [each.sentence for each in visit(client, cast.viewer, path).notices]


def test_nothing_is_said_once_the_version_is_shown(client: Client, cast: Cast) -> None:
    in_force(cast, ADD)
    assert work_notice(cast.system.pk) == ""
    assert visit(client, cast.viewer, rules_url(cast.system)).work is None


def test_a_page_that_waits_asks_again_and_is_told_when_it_is_done(
    client: Client, cast: Cast
) -> None:
    version = approved(cast, ADD)
    path = rules_url(cast.system)
    asks = {"HX-Request": "true", "HX-Target": "rules-moving"}
    moving = visit(client, cast.viewer, path)
    first = client.get(path, headers=asks)
    RulesJob.objects.filter(rules=version).update(state=WorkState.CANCELLED.value)
    done = client.get(path, headers=asks)

    assert moving.poll_url == path
    assert "HX-Refresh" not in first
    assert 'hx-trigger="every 1s"' in first.content.decode()
    assert (done["HX-Refresh"], done.content) == ("true", b"")
    assert visit(client, cast.viewer, path).poll_url == ""
    assert "HX-Request" in done["Vary"]


def test_drafts_are_shown_to_whoever_made_them(client: Client, cast: Cast) -> None:
    preview = drafted(cast, ADD)
    mine = visit(client, cast.engineer, rules_url(cast.system))
    others = visit(client, cast.reviewer, rules_url(cast.system))

    assert [(draft.label, draft.href) for draft in mine.drafts] == [
        (
            "New rule: calculate.expression: expressions with the same value are equal.",
            f"{rules_url(cast.system)}previews/{preview.uuid}/",
        )
    ]
    assert others.drafts == ()


def test_a_large_change_is_not_listed_in_full(client: Client, cast: Cast) -> None:
    many = tuple(
        ArgumentRule(f"t{n}", f"a{n * 7919}", Ignore(), f"because {n * 104729}", f"p{n}")
        for n in range(1_500)
    )
    proposed(cast, RuleChange(put=many))
    drafted(cast, RuleChange(put=many))
    page = visit(client, cast.engineer, rules_url(cast.system))

    assert [line.changes for line in page.proposals] == [()]
    assert [draft.label for draft in page.drafts] == ["A large change"]


# Suggestions


def test_suggestions_are_offered_and_none_is_applied(client: Client, cast: Cast) -> None:
    ingest(cast.system, sums("2 * 600", "1200", "600 * 2"))
    searched(cast.system)
    page = visit(client, cast.engineer, rules_url(cast.system))
    seen = visit(client, cast.viewer, rules_url(cast.system))

    (row,) = page.suggestions.rows
    assert (row.sentence, row.effect) == (
        "calculate.expression: expressions with the same value are equal.",
        "2 paths fewer in 1 task",
    )
    assert page.suggestions.words == (
        "1 suggestion, from 3 passing paths that differ by arguments alone. "
        "None is applied by itself."
    )
    assert not page.suggestions.can_choose
    assert (seen.suggestions.rows[0].rule, seen.suggestions.again_url) == ("", "")
    assert RulesPreview.objects.count() == 0


def test_a_suggestion_is_previewed_by_one_button(client: Client, cast: Cast) -> None:
    ingest(cast.system, sums("2 * 600", "1200"))
    searched(cast.system)
    row = visit(client, cast.engineer, rules_url(cast.system)).suggestions.rows[0]
    answer = client.post(f"{rules_url(cast.system)}edit/", {"what": "suggested", "rule": row.rule})
    preview = RulesPreview.objects.get()

    assert (answer.status_code, answer["Location"]) == (
        302,
        f"{rules_url(cast.system)}previews/{preview.uuid}/",
    )
    (made,) = preview.document["rules"]
    assert (made["tool"], made["kind"], made["author"]) == ("calculate", "arithmetic", "engineer")
    form = visit(client, cast.engineer, row.edit_url)
    assert (form.tool, [k.value for k in form.kinds if k.is_checked]) == (
        "calculate",
        ["arithmetic"],
    )


def test_several_suggestions_are_previewed_together(client: Client, cast: Cast) -> None:
    records = sums("2 * 600", "1200") + [
        record("t2", n, calls=(("note", {"tags": tags}),))
        for n, tags in enumerate((["a", "b"], ["b", "a"]))
    ]
    ingest(cast.system, records)
    searched(cast.system)
    page = visit(client, cast.engineer, rules_url(cast.system))
    assert page.suggestions.can_choose
    client.post(
        f"{rules_url(cast.system)}edit/",
        {"what": "suggested", "rule": [row.rule for row in page.suggestions.rows]},
    )
    assert len(RulesPreview.objects.get().document["rules"]) == 2


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ([], "Choose a suggestion first."),
        (["nonsense"], "This suggestion cannot be read. Look for it again."),
        (["[1]"], "This suggestion cannot be read. Look for it again."),
        (['{"tool": "x"}'], "This suggestion cannot be read. Look for it again."),
        (["[" * 5_000], "This suggestion cannot be read. Look for it again."),
    ],
    ids=["none", "no-json", "no-object", "no-rule", "deep"],
)
def test_what_is_no_suggestion_is_refused(
    rules: list[str], sentence: str, client: Client, cast: Cast
) -> None:
    client.force_login(cast.engineer)
    answer = client.post(f"{rules_url(cast.system)}edit/", {"what": "suggested", "rule": rules})

    assert (answer.status_code, answer.context["page"].error) == (422, sentence)


@pytest.mark.parametrize("who", ["engineer", "reviewer", "owner"])
def test_suggestions_are_looked_for_anew(who: str, client: Client, cast: Cast) -> None:
    client.force_login(getattr(cast, who))
    answer = client.post(f"{rules_url(cast.system)}suggest")
    page = visit(client, getattr(cast, who), rules_url(cast.system))

    assert answer["Location"] == f"{rules_url(cast.system)}#suggestions"
    assert RulesSuggestions.objects.get().state == "waiting"
    assert (page.suggestions.is_moving, page.suggestions.words) == (
        True,
        "The stored paths are being searched.",
    )


def test_a_search_that_failed_says_so(client: Client, cast: Cast) -> None:
    row = ask_suggestions(cast.system, now=NOW)
    RulesSuggestions.objects.filter(pk=row.pk).update(state="failed", failure="Too long.")
    page = visit(client, cast.viewer, rules_url(cast.system))
    assert (page.suggestions.failure, page.suggestions.is_moving) == ("Too long.", False)
    assert page.suggestions.words == "Nobody has looked yet."


def test_where_nothing_differs_no_rule_is_suggested(client: Client, cast: Cast) -> None:
    ingest(cast.system, sums("1200", "1200"))
    searched(cast.system)
    one = visit(client, cast.viewer, rules_url(cast.system)).suggestions.words
    ingest(cast.system, sums("A-1", "B-2", task="t2"))
    searched(cast.system)
    other = visit(client, cast.viewer, rules_url(cast.system)).suggestions.words

    assert one == "No passing path of 1 task differs by arguments alone."
    assert other == "No rule would merge any of 2 passing paths that differ by arguments alone."


# Acts that begin on this page


def test_withdrawing_a_rule_begins_with_a_preview(client: Client, cast: Cast) -> None:
    in_force(cast, ADD)
    row = visit(client, cast.engineer, rules_url(cast.system)).rules[0]
    answer = client.post(f"{rules_url(cast.system)}edit/", {"what": "drop", "place": row.place})

    assert answer.status_code == 302
    preview = RulesPreview.objects.order_by("-pk")[0]
    assert (preview.document["rules"], preview.base.number) == ([], 2)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("", "This rule cannot be found. Choose it again."),
        ("[]", "This rule cannot be found. Choose it again."),
        ("[1, 2, 3]", "This rule cannot be found. Choose it again."),
        ("[" * 100_000, "This rule cannot be found. Choose it again."),
        ('["calculate", "expression", null]', "There is no rule on calculate.expression to drop."),
        ('["a\\u0000\\ud800", "", "t"]', "There is no rule on "),
    ],
    ids=["empty", "short", "numbers", "deep", "absent", "hostile"],
)
def test_a_rule_that_is_not_there_cannot_be_withdrawn(
    place: str, sentence: str, client: Client, cast: Cast
) -> None:
    client.force_login(cast.engineer)
    answer = client.post(f"{rules_url(cast.system)}edit/", {"what": "drop", "place": place})

    assert answer.status_code == 422
    assert answer.context["page"].error.startswith(sentence)
    assert 'role="alert"' in answer.content.decode()


def test_going_back_to_an_earlier_version_begins_with_a_preview(client: Client, cast: Cast) -> None:
    in_force(cast, ADD)
    back = visit(client, cast.engineer, f"{rules_url(cast.system)}versions/1/").back
    answer = client.post(
        f"{rules_url(cast.system)}edit/", {field.name: field.value for field in back}
    )

    assert answer.status_code == 302
    preview = RulesPreview.objects.order_by("-pk")[0]
    assert preview.change == {
        "put": [],
        "drop": [{"tool": "calculate", "argument": "expression", "task": None}],
        "kinds": {},
    }


def test_there_is_no_way_back_to_what_never_was(client: Client, cast: Cast) -> None:
    proposed(cast, ADD)
    client.force_login(cast.engineer)

    def answer(number: str) -> tuple[int, str]:
        got = client.post(f"{rules_url(cast.system)}edit/", {"what": "back", "number": number})
        return got.status_code, got.context["page"].error if got.status_code == 422 else ""

    assert answer("2") == (
        422,
        "Version 2 never was in force: there is no way back to it.",
    )
    assert answer("1") == (422, "This changes nothing: the rules say so already.")
    assert answer("9")[0] == answer("x")[0] == answer("9" * 40)[0] == 404


@pytest.mark.parametrize("place", ["<script>alert(1)</script>", "a\u202eb", "x" * 3_000, "\u2028"])
def test_hostile_names_are_shown_as_text(place: str, client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", n, calls=((place, {place: n}),)) for n in range(2)])
    hostile = ArgumentRule(place, place, Ignore(), place, place, place)
    in_force(cast, RuleChange(put=(hostile,)))
    proposed(cast, RuleChange(drop=(RulePlace(place, place, place),)))
    searched(cast.system)
    client.force_login(cast.engineer)
    text = client.get(rules_url(cast.system)).content.decode()

    assert "<script>alert" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("query", ["after=x", "before=-1", f"after={'9' * 30}", "after=0"])
def test_odd_places_in_the_history_ask_for_nothing(query: str, client: Client, cast: Cast) -> None:
    client.force_login(cast.viewer)
    assert client.get(f"{rules_url(cast.system)}?{query}").status_code == 200


def test_query_count_of_the_page_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, sums("2 * 600", "1200"))
    in_force(cast, ADD)
    searched(cast.system)
    proposed(cast, RuleChange(kinds=(("a", ToolKind.READ),)))
    drafted(cast, RuleChange(kinds=(("a", ToolKind.READ),)))
    client.force_login(cast.engineer)
    one = n_queries(client, rules_url(cast.system))
    ingest(cast.system, [record("t2", n, calls=((f"tool {n}", {"x": n}),)) for n in range(3)])
    for name in ("b", "c", "d"):
        proposed(cast, RuleChange(kinds=((name, ToolKind.READ),)))
        drafted(cast, RuleChange(kinds=((name, ToolKind.READ),)))
    in_force(cast, RuleChange(put=(NOISE,)))
    searched(cast.system)

    assert (one, n_queries(client, rules_url(cast.system))) == (12, 12)


def test_whoever_may_not_propose_is_told_why(client: Client, cast: Cast) -> None:
    people: dict[str, User] = {"viewer": cast.viewer, "reviewer": cast.reviewer}
    for user in people.values():
        page = visit(client, user, rules_url(cast.system))
        assert (page.new_url, page.kinds_url) == ("", "")
        assert page.why_not.startswith("Only an engineer of this system")
