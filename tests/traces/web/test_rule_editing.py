"""Making a rule, from a difference or from nothing, and saying what tools do."""

from __future__ import annotations

import json
import uuid
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.rules import approved, drafted, in_force, proposed
from tests.support.visits import n_queries, root, visit
from traces.core.rule_changes import RuleChange
from traces.core.rules import (
    Alias,
    ArgumentRule,
    Arithmetic,
    Default,
    RoundTo,
    RuleKind,
    RuleTerms,
    SameTime,
    Time,
)
from traces.core.trajectory import ToolKind
from traces.models import RulesPreview, System, Task, Tool
from traces.selectors.rule_choices import rule_argument, seen_arguments
from traces.web.rule_forms import rule_text, split_values, value_in

pytestmark = pytest.mark.django_db

SUM = ArgumentRule("calculate", "expression", Arithmetic(), "Spellings of one sum.", "ada")
ADD = RuleChange(put=(SUM,))
FORM = {
    "what": "rule",
    "tool": "calculate",
    "argument": '"expression"',
    "kind": "arithmetic",
    "reason": "Two spellings of one sum.",
}


def form_url(system: System) -> str:
    return f"{root(system)}rules/edit/"


def send(client: Client, cast: Cast, **fields: Any) -> Any:
    client.force_login(cast.engineer)
    return client.post(form_url(cast.system), {**FORM, **fields})


@pytest.fixture
def sums(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", n, calls=(("calculate", {"expression": text}),))
            for n, text in enumerate(("2 * 600", "1200"))
        ],
    )


def form_errors(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 422
    errors = answer.context["page"].form.errors
    return {name: list(map(str, found)) for name, found in errors.items()}


def test_the_form_begins_with_the_tool(client: Client, cast: Cast, sums: None) -> None:
    page = visit(client, cast.engineer, form_url(cast.system))
    assert (page.tool, [(o.value, o.label) for o in page.tools]) == (
        "",
        [('"calculate"', "calculate")],
    )


def test_without_any_trace_there_is_no_tool_to_choose(client: Client, cast: Cast) -> None:
    visit(client, cast.engineer, form_url(cast.system))
    text = client.get(form_url(cast.system)).content.decode()
    assert "No stored trace of this system calls a tool yet." in text


def test_the_form_offers_the_arguments_of_stored_calls(client: Client, cast: Cast) -> None:
    flights = [{"date": "05-20", "a/b": 1}, {"date": "05-21"}]
    ingest(cast.system, [record("t1", 0, calls=(("book", {"flights": flights, "*": 1}),))])
    page = visit(client, cast.engineer, form_url(cast.system), tool="book")

    assert [(json.loads(o.value), o.label) for o in page.arguments] == [
        ("flights", 'flights, such as [{"a/b":1,"date":"05-20"},{"date":"05-21"}]'),
        ("/~2", '["*"], such as 1'),
        ("/flights/*", 'flights[*], such as {"a/b":1,"date":"05-20"}'),
        ("/flights/*/a~1b", 'flights[*]["a/b"], such as 1'),
        ("/flights/*/date", 'flights[*].date, such as "05-20"'),
    ]
    assert not page.has_argument


def test_two_values_bring_the_kinds_that_make_them_equal_first(
    client: Client, cast: Cast, sums: None
) -> None:
    page = visit(
        client,
        cast.engineer,
        form_url(cast.system),
        tool="calculate",
        argument="expression",
        left='"2 * 600"',
        right='"1200"',
    )

    assert [(k.value, k.fit, k.is_checked) for k in page.fitting] == [
        ("arithmetic", "2 spellings, all 1200", True),
        ("alias", '"2 * 600" = "1200", declared equal', False),
        ("ignore", "2 values, not compared", False),
    ]
    assert len(page.kinds) == len(RuleKind) - 3
    shown = client.get(form_url(cast.system), {"tool": "calculate"}).content.decode()
    assert "(optional)" not in shown
    assert "Same instant or same day" in shown
    assert page.form["groups"].value() == '"2 * 600" = "1200"'
    assert (page.left, page.right) == ('"2 * 600"', '"1200"')
    assert [json.loads(o.value) for o in page.arguments if o.is_selected] == ["expression"]


def test_an_absent_value_offers_a_default(client: Client, cast: Cast, sums: None) -> None:
    page = visit(
        client, cast.engineer, form_url(cast.system), tool="calculate", argument="x", right="1.50"
    )
    assert [(k.value, k.fit, k.is_checked) for k in page.fitting] == [
        ("default", "1.5 or none", True),
        ("ignore", "1 value or none, not compared", False),
    ]
    assert (page.left, page.form["value"].value()) == (None, "1.5")


def test_what_only_ignoring_makes_equal_is_not_chosen_beforehand(
    client: Client, cast: Cast, sums: None
) -> None:
    page = visit(
        client, cast.engineer, form_url(cast.system), tool="calculate", left='"A-1"', right='"B"'
    )
    assert [k.value for k in page.fitting] == ["alias", "ignore"]
    assert not any(k.is_checked for k in (*page.fitting, *page.kinds))


@pytest.mark.parametrize(
    ("left", "right"),
    [("{", "1"), ("NaN", "1"), ("1", "1.0"), ("1" * 3_000, "1"), ("[" * 900, "1")],
    ids=["cut", "nan", "equal", "long", "deep"],
)
def test_values_that_say_nothing_are_left_out(
    left: str, right: str, client: Client, cast: Cast, sums: None
) -> None:
    page = visit(
        client, cast.engineer, form_url(cast.system), tool="calculate", left=left, right=right
    )
    assert (page.has_values, page.fitting, len(page.kinds)) == (False, (), len(RuleKind))


def test_a_rule_leads_to_its_preview(client: Client, cast: Cast, sums: None) -> None:
    answer = send(client, cast)
    preview = RulesPreview.objects.get()

    assert answer["Location"] == f"{root(cast.system)}rules/previews/{preview.uuid}/"
    assert preview.document["rules"] == [
        {
            "tool": "calculate",
            "argument": "expression",
            "kind": "arithmetic",
            "reason": "Two spellings of one sum.",
            "author": "engineer",
            "task": None,
        }
    ]
    assert (preview.by, preview.state) == (cast.engineer, "waiting")


@pytest.mark.parametrize(
    ("fields", "terms"),
    [
        ({"kind": "ignore"}, {}),
        ({"kind": "text"}, {}),
        ({"kind": "unordered"}, {}),
        ({"kind": "round_to", "step": " 0.01 "}, {"step": "0.01"}),
        ({"kind": "datetime", "same": "instant"}, {"same": "instant", "zone": "UTC"}),
        (
            {"kind": "datetime", "same": "day", "zone": "Europe/Berlin"},
            {"same": "day", "zone": "Europe/Berlin"},
        ),
        ({"kind": "default", "value": "economy"}, {"value": "economy"}),
        ({"kind": "default", "value": "1.50"}, {"value": 1.5}),
        ({"kind": "default", "value": "null"}, {"value": None}),
        (
            {"kind": "alias", "groups": 'economy = "coach"\r\n\r\n1 = "one = 1" = [1, "="]'},
            {"groups": [["economy", "coach"], [1, "one = 1", [1, "="]]]},
        ),
    ],
    ids=lambda value: "-".join(map(str, value.values()))[:30] if isinstance(value, dict) else None,
)
def test_each_kind_has_fields_of_its_own(
    fields: dict[str, str], terms: dict[str, Any], client: Client, cast: Cast, sums: None
) -> None:
    assert send(client, cast, **fields).status_code == 302
    (made,) = RulesPreview.objects.get().document["rules"]
    common = {"tool", "argument", "kind", "reason", "author", "task"}
    assert {name: value for name, value in made.items() if name not in common} == terms


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"kind": ""}, "kind"),
        ({"kind": "magic"}, "kind"),
        ({"reason": " "}, "reason"),
        ({"reason": "x" * 4_001}, "reason"),
        ({"argument": "-"}, "argument"),
        ({"argument": ""}, "argument"),
        ({"argument": "[1]"}, "argument"),
        ({"argument": json.dumps("x" * 2_001)}, "argument"),
        ({"argument": "", "place": "/" + "a/" * 100}, "argument"),
        ({"argument": "", "place": "a\x00b"}, "place"),
        ({"kind": "round_to"}, "step"),
        ({"kind": "round_to", "step": "0"}, "step"),
        ({"kind": "round_to", "step": "1e99"}, "step"),
        ({"kind": "round_to", "step": "a step"}, "step"),
        ({"kind": "datetime"}, "same"),
        ({"kind": "datetime", "same": "week"}, "same"),
        ({"kind": "datetime", "same": "day", "zone": "../etc"}, "zone"),
        ({"kind": "default"}, "value"),
        ({"kind": "default", "value": '{"a": 1, "a": 2}'}, "value"),
        ({"kind": "default", "value": "1", "argument": '"/list/*"'}, "argument"),
        ({"kind": "alias"}, "groups"),
        ({"kind": "alias", "groups": "one"}, "groups"),
        ({"kind": "alias", "groups": "a = b\na = c"}, "groups"),
        ({"kind": "alias", "groups": '"a = b'}, "groups"),
        ({"kind": "alias", "groups": "[1 = 2"}, "groups"),
        ({"task": "nonsense"}, "task"),
        ({"task": str(uuid.UUID(int=7))}, "task"),
        ({"tool": "never_seen"}, "__all__"),
        ({"tool": ""}, "__all__"),
        ({"argument": json.dumps("a\ud800")}, "__all__"),
        ({"kind": "default", "value": "0." + "1" * 60}, "__all__"),
    ],
    ids=lambda value: (
        "-".join(f"{k}={v}" for k, v in value.items())[:40].encode("ascii", "replace").decode()
        if isinstance(value, dict)
        else None
    ),
)
def test_what_cannot_be_a_rule_is_said_at_its_field(
    fields: dict[str, str], field: str, client: Client, cast: Cast, sums: None
) -> None:
    found = form_errors(send(client, cast, **fields))
    assert [name for name in found if found[name]] == [field]
    assert RulesPreview.objects.count() == 0


def test_an_invalid_form_keeps_what_was_chosen(client: Client, cast: Cast, sums: None) -> None:
    task = Task.objects.get()
    answer = send(
        client,
        cast,
        reason="",
        kind="round_to",
        step="0.5",
        left='"1"',
        right='"2"',
        near=str(task.uuid),
        argument="",
        place="/x/*",
    )
    page = answer.context["page"]

    assert answer.status_code == 422
    assert [(f.name, f.value) for f in page.hidden] == [
        ("left", '"1"'),
        ("right", '"2"'),
        ("near", str(task.uuid)),
    ]
    assert (page.form["step"].value(), page.form["place"].value()) == ("0.5", "/x/*")
    assert (page.is_argument_typed, page.is_other_chosen) == (True, True)
    assert [o.label for o in page.tasks] == ["All tasks of the system", "Only task t1"]


def test_a_rule_may_hold_for_one_task(client: Client, cast: Cast, sums: None) -> None:
    assert send(client, cast, task=str(Task.objects.get().uuid)).status_code == 302
    assert RulesPreview.objects.get().document["rules"][0]["task"] == "t1"


def test_another_systems_task_is_none(client: Client, cast: Cast, sums: None) -> None:
    ingest(cast.other_system, [record("t9", 0)])
    other = Task.objects.get(task_id="t9")
    found = form_errors(send(client, cast, task=str(other.uuid)))
    assert found == {"task": ["There is no such task in this system."]}
    text = client.get(form_url(cast.system), {"tool": "calculate", "task": other.uuid})
    assert "t9" not in text.content.decode()


def test_the_rule_that_stands_there_already_is_shown_and_replaced(
    client: Client, cast: Cast, sums: None
) -> None:
    in_force(cast, ADD)
    page = visit(
        client, cast.engineer, form_url(cast.system), tool="calculate", argument="/expression"
    )
    assert page.earlier == "calculate.expression: expressions with the same value are equal."

    same = form_errors(send(client, cast))
    assert same == {"__all__": ["This changes nothing: the rules say so already."]}
    assert send(client, cast, kind="ignore").status_code == 302
    (made,) = RulesPreview.objects.order_by("-pk")[0].document["rules"]
    assert made["kind"] == "ignore"


@pytest.mark.parametrize(
    "name", ["a\nb", "a\r\nb", "<i>b", "a\u202eb", "Ω", "e\u0301", "x" * 3_000, '"quoted"']
)
def test_hostile_tools_and_arguments_can_have_rules(name: str, client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=((name, {name[:99]: 1}),))])
    stored = Tool.objects.get().name
    tool = visit(client, cast.engineer, form_url(cast.system)).tools[0].value
    page = visit(client, cast.engineer, form_url(cast.system), tool=tool)
    linked = visit(client, cast.engineer, form_url(cast.system), tool=name)
    text = client.get(form_url(cast.system), {"tool": tool}).content.decode()
    answer = send(client, cast, tool=tool, argument=page.arguments[0].value, kind="ignore")

    assert (page.tool, linked.tool, answer.status_code) == (stored, stored, 302)
    assert "<i>" not in text
    assert "\u202e" not in text
    (made,) = RulesPreview.objects.get().document["rules"]
    assert made["tool"] == stored


def test_query_count_of_the_form_does_not_grow(client: Client, cast: Cast, sums: None) -> None:
    client.force_login(cast.engineer)
    one = n_queries(client, form_url(cast.system), tool="calculate")
    ingest(
        cast.system,
        [record(f"t{n}", 0, calls=(("calculate", {f"x{n}": n}),)) for n in range(2, 5)],
    )
    in_force(cast, RuleChange(kinds=(("other", ToolKind.READ), ("more", ToolKind.READ))))
    assert (one, n_queries(client, form_url(cast.system), tool="calculate")) == (9, 9)


# From a difference


def test_a_difference_leads_to_the_form(client: Client, cast: Cast) -> None:
    calls = [
        (("book", {"flights": [{"date": date}], "seat": seat, "class": "eco"}),)
        for date, seat in (("05-20", "1A"), ("05-21", "1B"))
    ]
    calls[1][0][1]["meal"] = "none"
    ingest(cast.system, [record("t1", n, calls=each) for n, each in enumerate(calls)])
    task = Task.objects.get()
    compare = f"{root(cast.system)}tasks/{task.uuid}/compare/"
    page = visit(client, cast.engineer, compare, level="exact")
    row = page.stretches[0].rows[0]
    links = {a.name: [link.label for link in a.rules] for a in row.right.arguments if a.rules}

    assert links == {
        "flights": ["book.flights[0].date"],
        "meal": ["book.meal"],
        "seat": ["book.seat"],
    }
    assert not any(a.rules for a in row.left.arguments)
    (flights,) = (a for a in row.right.arguments if a.name == "flights")
    form = visit(client, cast.engineer, flights.rules[0].href)
    assert (form.tool, form.left, form.right) == ("book", '"05-20"', '"05-21"')
    assert [json.loads(o.value) for o in form.arguments if o.is_selected] == ["/flights/*/date"]
    assert [o.label for o in form.tasks] == ["All tasks of the system", "Only task t1"]
    (meal,) = (a for a in row.right.arguments if a.name == "meal")
    form = visit(client, cast.engineer, meal.rules[0].href)
    assert (form.left, form.right, form.fitting[0].value) == (None, '"none"', "default")
    seen = visit(client, cast.viewer, compare, level="exact")
    assert not any(a.rules for a in seen.stretches[0].rows[0].right.arguments)


def test_long_values_are_not_carried_along(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", n, calls=(("say", {"text": letter * 2_000}),))
            for n, letter in enumerate("ab")
        ],
    )
    compare = f"{root(cast.system)}tasks/{Task.objects.get().uuid}/compare/"
    row = visit(client, cast.engineer, compare, level="exact").stretches[0].rows[0]
    (link,) = row.right.arguments[0].rules
    assert "left=" not in link.href
    assert not visit(client, cast.engineer, link.href).has_values


def test_a_difference_that_a_rule_merges_asks_for_none(
    client: Client, cast: Cast, sums: None
) -> None:
    in_force(cast, ADD)
    compare = f"{root(cast.system)}tasks/{Task.objects.get().uuid}/compare/"
    row = visit(client, cast.engineer, compare, level="exact").stretches[0].rows[0]
    assert row.right.arguments[0].rules == ()


@pytest.mark.parametrize(
    ("arguments", "path", "argument"),
    [
        ({"a": 1}, "/a", "a"),
        ({"a b": 1}, "/a b", "a b"),
        ({"": 1}, "/", "/"),
        ({"*": 1}, "/*", "/~2"),
        ({"a/b": 1}, "/a~1b", "/a~1b"),
        ({"0": [5]}, "/0/0", "/0/*"),
        ([[1]], "/0/0", "/*/*"),
        ({"a": [1]}, "/a/7", "/a/*"),
        ({"a": 1}, "/a/b/c", "/a/b/c"),
        ({"a": [1]}, "/a/x", "/a/*"),
        ({}, "", ""),
    ],
    ids=lambda value: json.dumps(value),
)
def test_a_place_in_a_call_is_named_as_rules_name_it(
    arguments: Any, path: str, argument: str
) -> None:
    assert rule_argument(arguments, path) == argument


def test_arguments_are_looked_for_in_bounds(cast: Cast) -> None:
    deep: Any = 1
    for _ in range(8):
        deep = {"d": deep}
    wide = {f"w{n}": n for n in range(300)}
    ingest(
        cast.system,
        [
            record("t1", 0, calls=(("deep", deep), ("wide", wide), ("long", {"x": "y" * 30_000}))),
            record("t1", 1, calls=(("long", {"z": "y" * 300}),)),
        ],
    )
    assert [a.argument for a in seen_arguments(cast.system.pk, "deep")] == [
        "d",
        "/d/d",
        "/d/d/d",
        "/d/d/d/d",
    ]
    assert len(seen_arguments(cast.system.pk, "wide")) == 40
    (one,) = seen_arguments(cast.system.pk, "long")
    assert (one.argument, len(one.example), one.example[-1]) == ("z", 80, "…")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("a = b", ["a", "b"]),
        ('"a = b" = c', ['"a = b"', "c"]),
        ('"a \\" = b" = c', ['"a \\" = b"', "c"]),
        ('[1, 2] = {"x": "="}', ["[1, 2]", '{"x": "="}']),
        ('5" = 6"', ['5"', '6"']),
        ("]= a", ["]", "a"]),
        ("", [""]),
    ],
)
def test_values_of_a_line_stand_between_signs(line: str, parts: list[str]) -> None:
    assert split_values(line) == parts


def test_a_typed_value_is_json_or_a_text() -> None:
    assert [value_in(text) for text in ("1", "true", '"1"', "eco", " 1 2 ", "NaN")] == [
        1,
        True,
        "1",
        "eco",
        "1 2",
        "NaN",
    ]


# Tool kinds


def kinds_page(client: Client, cast: Cast) -> Any:
    return visit(client, cast.engineer, form_url(cast.system), what="kinds")


def test_kinds_of_tools_lead_to_a_preview(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=(("look", {}), ("pay", {}), ("gone\n", {})))])
    in_force(cast, RuleChange(kinds=(("pay", ToolKind.WRITE), ("old", ToolKind.READ))))
    page = kinds_page(client, cast)
    field = {row.name: row.field for row in page.rows}
    answer = client.post(
        form_url(cast.system),
        {"what": "kinds", field["look"]: "read", field["pay"]: "write", field["old"]: ""},
    )

    assert [(row.name, row.is_set) for row in page.rows] == [
        ("gone\n", False),
        ("look", False),
        ("old", True),
        ("pay", True),
    ]
    assert answer.status_code == 302
    assert RulesPreview.objects.order_by("-pk")[0].change["kinds"] == {"look": "read", "old": None}


@pytest.mark.parametrize(
    ("word", "sentence"),
    [("", "No kind was changed."), ("magic", "A tool reads, writes or hands over.")],
)
def test_kinds_that_say_nothing_are_refused(
    word: str, sentence: str, client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("t1", 0, calls=(("look", {}), ("pay", {})))])
    rows = kinds_page(client, cast).rows
    answer = client.post(form_url(cast.system), {"what": "kinds", rows[0].field: word})

    assert (answer.status_code, answer.context["page"].error) == (422, sentence)


def test_query_count_of_kinds_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=(("a", {}),))])
    client.force_login(cast.engineer)
    one = n_queries(client, form_url(cast.system), what="kinds")
    ingest(cast.system, [record("t2", 0, calls=(("b", {}), ("c", {}), ("d", {})))])
    assert (one, n_queries(client, form_url(cast.system), what="kinds")) == (7, 7)


# The same change again


def test_an_overtaken_proposal_is_previewed_again(client: Client, cast: Cast) -> None:
    version = proposed(cast, ADD)
    approved(cast, RuleChange(kinds=(("calculate", ToolKind.READ),)))
    client.force_login(cast.engineer)
    answer = client.post(form_url(cast.system), {"what": "again", "number": version.number})

    assert answer.status_code == 302
    preview = RulesPreview.objects.order_by("-pk")[0]
    assert (preview.base.number, preview.change) == (3, version.change)
    assert preview.document["tools"] == {"calculate": "read"}


def test_a_preview_is_made_again(client: Client, cast: Cast) -> None:
    preview = drafted(cast, ADD)
    client.force_login(cast.engineer)
    answer = client.post(form_url(cast.system), {"what": "again", "preview": str(preview.uuid)})

    assert answer.status_code == 302
    assert RulesPreview.objects.count() == 2


def test_what_cannot_be_made_again_is_said(client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    whole = client.post(form_url(cast.system), {"what": "again", "number": "1"})
    absent = client.post(form_url(cast.system), {"what": "again", "preview": str(uuid.uuid4())})

    assert (whole.status_code, whole.context["page"].error) == (
        422,
        "Version 1 was made whole: it is no change of another.",
    )
    assert absent.status_code == 404
    assert client.post(form_url(cast.system), {"what": "again"}).status_code == 404


# Changing a rule


@pytest.mark.parametrize(
    ("terms", "fields"),
    [
        (Time(SameTime.DAY, "Europe/Berlin"), {"same": "day", "zone": "Europe/Berlin"}),
        (RoundTo(Decimal("1E-2")), {"step": "0.01"}),
        (Default('"eco"'), {"value": '"eco"'}),
        (Alias((("1", '"one"'),)), {"groups": '1 = "one"'}),
        (Arithmetic(), {}),
    ],
    ids=["time", "round", "default", "alias", "arithmetic"],
)
def test_a_rule_is_changed_in_the_form_that_made_it(
    terms: RuleTerms, fields: dict[str, str], client: Client, cast: Cast, sums: None
) -> None:
    rule = ArgumentRule("calculate", "expression", terms, "Because.", "ada", "t1")
    in_force(cast, RuleChange(put=(rule,)))
    row = visit(client, cast.engineer, f"{root(cast.system)}rules/").rules[0]
    page = visit(client, cast.engineer, row.change_url)

    assert (page.tool, page.form["reason"].value()) == ("calculate", "Because.")
    assert [k.value for k in page.kinds if k.is_checked] == [rule.kind.value]
    assert {name: page.form[name].value() for name in fields} == fields
    assert [o.label for o in page.tasks if o.is_selected] == ["Only task t1"]
    assert page.earlier.startswith("calculate.expression: ")
    sent = {name: page.form[name].value() or "" for name in page.form.fields}
    answer = client.post(
        form_url(cast.system), {**sent, "tool": page.tool_value, "task": sent["task"]}
    )
    assert form_errors(answer) == {"__all__": ["This changes nothing: the rules say so already."]}


def test_a_suggestion_that_is_a_rule_already_changes_nothing(
    client: Client, cast: Cast, sums: None
) -> None:
    in_force(cast, ADD)
    client.force_login(cast.engineer)
    answer = client.post(form_url(cast.system), {"what": "suggested", "rule": rule_text(SUM)})
    assert (answer.status_code, answer.context["page"].error) == (
        422,
        "This changes nothing: the rules say so already.",
    )
