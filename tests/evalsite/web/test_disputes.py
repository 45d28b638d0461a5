from __future__ import annotations

import csv
import io
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.web import dispute_filters
from evalsite.web.decided_rows import BLIND, BY_PARTY
from evalsite.web.dispute_words import (
    DECIDES,
    NOT_COUNTING,
    NOT_COUNTING_YET,
    heading_of,
    idle_words,
)
from reviews.core.disputes import NoEffect
from reviews.models import (
    Adjudication,
    CalibrationItem,
    CalibrationSet,
    Criterion,
    Dispute,
    DisputeSkip,
    GraderVersion,
    Label,
)
from reviews.selectors.blinding import HIDDEN
from reviews.selectors.disputes import DisputeTotals
from tests.support.cases import NOW
from tests.support.cast import Cast
from tests.support.disputes import disputed, judged
from tests.support.evidence import ingest
from tests.support.visits import n_queries, root, visit
from traces.models import System
from traces.web.pages.disputes import DisputeCount, DisputeListPage, DisputeVoice

pytestmark = pytest.mark.django_db

HOSTILE = "<img src=x onerror=alert(1)>\u202e{{ 7*7 }}"


def path(system: System) -> str:
    return f"{root(system)}disputes/"


def look(client: Client, cast: Cast, **query: Any) -> DisputeListPage:
    page: DisputeListPage = visit(client, cast.viewer, path(cast.system), **query)
    return page


def tone(task_id: str = "tone", *, n: int = 0, **judges: Any) -> dict[str, Any]:
    """A trial on which judges alone say something, so that an adjudication would decide it."""
    words = judges or {"terse": "pass", "long": "fail"}
    return judged(task_id, n, code=None, criterion="tone", **words)


def trials(page: DisputeListPage) -> list[str]:
    return [row.trial.label for row in page.rows]


def judge_pk(name: str) -> int:
    return GraderVersion.objects.get(grader__name=name).pk


def rule(dispute: Dispute, cast: Cast, ruling: str = "pass", **more: Any) -> Adjudication:
    trial = dispute.trial
    facts: dict[str, Any] = {
        "reason": "Step 3 says it.",
        "by": cast.reviewer,
        "is_by_party": False,
        "cited_steps": [3],
        "decided_at": NOW,
        **more,
    }
    return Adjudication.objects.create(
        system=cast.system,
        trial=trial,
        criterion=Criterion.objects.get(system=cast.system, name=dispute.criterion),
        ruling=ruling,
        seen=[],
        evidence_order=0,
        evidence_digest=trial.digest,
        **facts,
    )


def blind_item(dispute: Dispute, cast: Cast) -> CalibrationItem:
    """The dispute's trial in an open blind set on its criterion."""
    made = CalibrationSet.objects.create(
        system=cast.system,
        number=1,
        name="Tone",
        criterion=Criterion.objects.get(system=cast.system, name=dispute.criterion),
        sampling="chosen",
        reason="To see.",
        is_imported=False,
        by=cast.engineer,
        created_at=NOW,
    )
    return CalibrationItem.objects.create(set=made, trial=dispute.trial, position=1)


# ---- one by one ----


def test_without_disputes_it_says_so(client: Client, cast: Cast) -> None:
    found = {
        state: look(client, cast, state=state).empty
        for state in ("open", "adjudicated", "over", "all")
    }

    assert {state: empty and empty.heading for state, empty in found.items()} == {
        "open": "No open dispute",
        "adjudicated": "Nothing is adjudicated",
        "over": "No dispute is over",
        "all": "No open dispute",
    }
    filtered = look(client, cast, deciding="1")
    assert filtered.empty is not None
    assert filtered.empty.heading == "No dispute is like that"


def test_a_row_tells_who_says_what_and_what_it_changes(client: Client, cast: Cast) -> None:
    (dispute,) = disputed(cast, judged(terse="pass", late="error"))

    page = look(client, cast)

    assert page.heading == ("1 dispute, it decides nothing, because code decides outcome")
    (row,) = page.rows
    assert (row.trial.label, row.trial.href) == (
        "t1 · trial 0",
        f"{path(cast.system)}{dispute.uuid}/",
    )
    assert (row.criterion, row.about, row.below) == ("outcome", ("class outcome",), ("1.0",))
    assert row.kinds == ("code against judge",)
    assert [
        (each.value.label, each.value.state, each.voices, each.n_more) for each in row.says
    ] == [
        (
            "pass",
            "pass",
            (DisputeVoice("judge", "terse", "1", "not calibrated, does not count"),),
            0,
        ),
        ("fail", "fail", (DisputeVoice("code", "state check", "", ""),), 0),
        (
            "error",
            "harness-error",
            (DisputeVoice("judge", "late", "1", "not calibrated, does not count"),),
            0,
        ),
    ]
    assert (row.effect.label, row.not_counting) == ("code decides it", NOT_COUNTING)
    assert (row.state, row.hidden, row.skipped) == (None, "", "")


def test_deciding_ones_come_first_then_the_class_then_the_age(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [judged("a", terse="pass"), tone("b"), tone("c"), judged("d", terse="pass")],
    )
    oldest = Dispute.objects.get(task__task_id="d")
    Dispute.objects.filter(pk=oldest.pk).update(opened_at=oldest.opened_at - timedelta(days=1))

    page = look(client, cast)

    assert page.heading == "4 disputes, 2 of them decide something"
    assert trials(page)[2:] == ["d · trial 0", "a · trial 0"]
    assert sorted(trials(page)[:2]) == ["b · trial 0", "c · trial 0"]
    assert [(tab.label, tab.count) for tab in page.tabs] == [("All", 4), ("Decide something", 2)]
    deciding = look(client, cast, deciding="1")
    assert sorted(trials(deciding)) == ["b · trial 0", "c · trial 0"]
    assert deciding.heading == "2 disputes, each of them decides something"
    assert [tab.count for tab in deciding.tabs] == [4, 2]
    assert page.rows[0].effect_sentence == DECIDES
    assert page.rows[0].not_counting == NOT_COUNTING_YET


def test_filters_are_in_the_address(client: Client, cast: Cast) -> None:
    ingest(cast.system, [judged("a", terse="pass"), tone("b"), tone("c", cold="fail", warm="pass")])
    ingest(cast.system, [{**tone("d"), "trial": 7}], release="2.0")
    release = Dispute.objects.get(task__task_id="d").release

    def shown(**query: Any) -> list[str]:
        return sorted(label.split()[0] for label in trials(look(client, cast, **query)))

    assert shown(criterion="outcome") == ["a"]
    assert shown(**{"class": "semantic"}) == ["b", "c", "d"]
    assert shown(kind="judge_judge") == ["b", "c", "d"]
    assert shown(kind="code_judge") == ["a"]
    assert shown(judge=judge_pk("terse")) == ["a", "b", "d"]
    assert shown(judge=judge_pk("cold")) == ["c"]
    assert shown(judge="-") == []
    assert shown(judge=judge_pk("terse"), stance="above_code") == ["a"]
    assert shown(judge=judge_pk("terse"), stance="other_judges") == ["b", "d"]
    assert shown(kind="judges_agree") == ["a"]
    assert shown(release=release.uuid) == ["d"]
    assert shown(release=uuid.uuid4()) == []
    assert shown(rubric="-") == ["a", "b", "c", "d"]
    assert shown(rubric="3") == []
    assert shown(family="-", split="-") == ["a", "b", "c", "d"]
    assert shown(split="tuning") == []
    # What does not exist asks for nothing.
    assert shown(state="x", kind="x", judge="x", family="x", split="x", mine="left") == [
        "a",
        "b",
        "c",
        "d",
    ]
    page = look(client, cast, judge=judge_pk("terse"), stance="above_code", rubric="-")
    assert page.filter.also == (
        "no rubric version named",
        "this judge: says pass, code does not",
    )
    assert page.rows[0].trial.href.endswith(
        f"?rubric=-&judge={judge_pk('terse')}&stance=above_code"
    )
    assert look(client, cast, rubric="3").filter.also == ("rubric version 3",)
    named = look(client, cast, criterion="gone").filter.criteria
    assert [(each.value, each.is_selected) for each in named] == [
        ("", False),
        ("gone", True),
        ("outcome", False),
        ("tone", False),
    ]


def test_pages_of_the_list_go_on_from_each_other(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "reviews.selectors.disputes.listed_disputes.__kwdefaults__",
        {
            "after": None,
            "before": None,
            "n": 2,
        },
    )
    ingest(cast.system, [judged(f"t{n}", terse="pass") for n in range(2)])
    ingest(cast.system, [tone(f"t{n}") for n in range(2, 5)])

    first = look(client, cast)
    second = visit(client, cast.viewer, first.pager.next_url)
    third = visit(client, cast.viewer, second.pager.next_url)

    found = trials(first) + trials(second) + trials(third)
    assert len(set(found)) == len(found) == 5
    assert {label[:2] for label in found[:3]} == {"t2", "t3", "t4"}
    assert (first.pager.previous_url, third.pager.next_url) == ("", "")
    back = visit(client, cast.viewer, third.pager.previous_url)
    assert trials(back) == trials(second)
    assert trials(visit(client, cast.viewer, back.pager.previous_url)) == trials(first)


def test_states_are_told(client: Client, cast: Cast) -> None:
    ingest(cast.system, [tone("a"), tone("b")])
    first, second = Dispute.objects.order_by("pk")
    says = {**first.says, "ruling": "rubric_unclear"}
    Dispute.objects.filter(pk=first.pk).update(state="adjudicated", says=says, closed_at=NOW)
    Dispute.objects.filter(pk=second.pk).update(state="over", decides=False, closed_at=NOW)

    decided, over = look(client, cast, state="adjudicated"), look(client, cast, state="over")

    assert (decided.heading, over.heading) == ("1 dispute adjudicated", "1 dispute that is over")
    (row,) = decided.rows
    assert row.state is not None
    assert (row.state.label, row.state.state) == ("adjudicated: rubric unclear", "unresolved")
    assert row.opened_at == NOW
    assert [row.state and row.state.label for row in over.rows] == ["over"]
    assert len(look(client, cast, state="all").rows) == 2


def test_reviewers_see_what_they_left_to_others(client: Client, cast: Cast) -> None:
    ingest(cast.system, [tone("a"), tone("b"), tone("c")])
    first, second, _ = Dispute.objects.order_by("pk")
    DisputeSkip.objects.create(dispute=first, by=cast.reviewer, reason="My friend's.", at=NOW)
    DisputeSkip.objects.create(dispute=second, by=cast.second_reviewer, reason="Not mine.", at=NOW)

    def shown(**query: Any) -> list[tuple[str, str]]:
        page = visit(client, cast.reviewer, path(cast.system), **query)
        return [(row.trial.label[0], row.skipped) for row in page.rows]

    assert shown() == [("a", "My friend's."), ("b", ""), ("c", "")]
    assert shown(mine="skipped") == [("a", "My friend's.")]
    assert shown(mine="left") == [("b", ""), ("c", "")]
    page = visit(client, cast.reviewer, path(cast.system))
    assert [each.label for each in page.filter.mine] == [
        "All",
        "those left to me",
        "those I skipped",
    ]
    assert page.start_url == f"{path(cast.system)}{first.uuid}/"
    assert look(client, cast).filter.mine == ()
    assert look(client, cast).start_url == ""


def test_what_must_stay_blind_is_hidden(client: Client, cast: Cast) -> None:
    ingest(cast.system, [tone("a"), tone("b")])
    first, second = Dispute.objects.order_by("pk")
    blind_item(first, cast)

    page = visit(client, cast.reviewer, path(cast.system))

    hidden, open_row = page.rows
    assert (hidden.hidden, hidden.says, hidden.kinds) == (HIDDEN, (), ())
    assert (hidden.effect.label, hidden.effect_sentence, hidden.not_counting) == ("hidden", "", "")
    assert open_row.hidden == ""
    text = client.get(path(cast.system)).content.decode()
    row = text[text.index(f"dispute-{first.uuid}") : text.index(f"dispute-{second.uuid}")]
    assert "terse" not in row
    # Being in a list of what is said would tell it as well.
    for query in ({"kind": "judge_judge"}, {"deciding": "1"}, {"judge": judge_pk("long")}):
        told = visit(client, cast.reviewer, path(cast.system), **query)
        assert (trials(told), told.has_left_out) == (["b · trial 0"], True)
    grouped = visit(client, cast.reviewer, path(cast.system), view="groups")
    assert [cause.words for cause in grouped.causes] == ["1 dispute, it decides something"]
    assert [row.hidden for row in look(client, cast).rows] == ["", ""]
    lines = _csv(client, cast.reviewer, cast)
    assert [(line["task"], line["pass"], line["decides"]) for line in lines] == [
        ("a", "", ""),
        ("b", "terse 1", "yes"),
    ]
    assert [line["task"] for line in _csv(client, cast.reviewer, cast, deciding="1")] == ["b"]


def test_text_from_traces_is_shown_as_text(client: Client, cast: Cast) -> None:
    named: dict[str, Any] = {HOSTILE: "pass"}
    disputed(cast, judged(HOSTILE, criterion=HOSTILE, code="fail", **named))

    for query in ({"view": "list"}, {"view": "groups"}):
        client.force_login(cast.viewer)
        text = client.get(path(cast.system), query).content.decode()
        assert "<img src=x" not in text
        assert "[U+202E]" in text
        # The value of a choice is sent back as it is; nobody reads it.
        assert "\u202e" not in re.sub(r'value="[^"]*"', "", text)


@pytest.mark.parametrize("n", [1, 3])
def test_the_list_takes_as_many_queries_for_any_number(client: Client, cast: Cast, n: int) -> None:
    disputed(cast, *(judged(f"t{k}", terse="pass") for k in range(n)))

    client.force_login(cast.viewer)
    assert n_queries(client, path(cast.system), view="list") == 10
    assert n_queries(client, path(cast.system), view="groups") == 11
    client.force_login(cast.reviewer)
    assert n_queries(client, path(cast.system), view="list") == 12
    assert n_queries(client, f"{path(cast.system)}decided/") == 5


# ---- by cause ----


def test_a_screenful_and_more_is_shown_by_cause(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalsite.web.disputes.SCREENFUL", 2)
    ingest(cast.system, [judged("a", terse="pass"), tone("b")])
    assert not look(client, cast).is_grouped
    ingest(cast.system, [judged("c", code="pass", terse="fail", long="pass", people=("pass",))])

    page = look(client, cast)

    assert page.is_grouped
    assert dispute_filters.SCREENFUL > 2
    assert [(view.label, view.is_current) for view in page.views] == [
        ("By cause", True),
        ("One by one", False),
    ]
    tone_cause, outcome = page.causes
    assert (tone_cause.criterion.label, tone_cause.words, tone_cause.is_deciding) == (
        "tone",
        "1 dispute, it decides something",
        True,
    )
    assert (outcome.words, outcome.why, outcome.about) == (
        "2 disputes, none decides anything",
        ("code decides it",),
        ("class outcome",),
    )
    assert [(words, count.n) for words, count in outcome.between] == [
        ("code against judge", 2),
        ("judge against person", 1),
        ("judge against judge", 1),
        ("judges that agree, against code", 1),
    ]
    terse, long = outcome.judges
    assert [(words, count.n if count else 0) for words, count in terse.by_stance] == [
        ("says pass, code does not", 1),
        ("does not say pass, code does", 1),
        ("against another judge", 1),
        ("against a person", 1),
        ("says both itself", 0),
    ]
    assert (terse.name, terse.version, terse.all.n, terse.deciding) == ("terse", "1", 2, None)
    assert (long.name, long.all.n) == ("long", 1)
    assert terse.card.endswith(
        f"judges/{judge_pk('terse')}/{Criterion.objects.get(name='outcome').pk}/"
    )


def test_every_count_leads_to_what_it_counts(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            judged("a", terse="pass", long="fail"),
            judged("b", code="pass", terse="unknown", people=("pass", "fail")),
            judged("c", code=None, terse="pass", people=("unknown",)),
            judged("d", code=None, people=("pass", "fail")),
            judged("e", code=None, criterion="tone", terse="pass", long="pass", people=("fail",)),
        ],
    )
    twice = judged("f", code=None, criterion="tone", terse="pass")
    twice["verdicts"].append({**twice["verdicts"][0], "verdict": "fail"})
    ingest(cast.system, [twice])

    page = look(client, cast, view="groups")

    n_counts = 0
    for cause in page.causes:
        listed = visit(client, cast.viewer, cause.criterion.href)
        assert listed.heading.startswith(cause.words.split(",")[0] + ",")
        counts: list[DisputeCount | None] = [count for _, count in cause.between]
        for judge in cause.judges:
            counts += [judge.all, judge.deciding, *(count for _, count in judge.by_stance)]
        for count in counts:
            if count is not None:
                n_counts += 1
                assert len(visit(client, cast.viewer, count.href).rows) == count.n, count.href
    assert n_counts > 20
    flips = [count for cause in page.causes for words, count in cause.between if "both" in words]
    assert [count.n for count in flips] == [1]


def test_disputes_without_a_judge_have_no_table(client: Client, cast: Cast) -> None:
    disputed(cast, judged(code="pass", people=("fail",)))

    (cause,) = look(client, cast, view="groups").causes

    assert cause.judges == ()
    assert [(words, count.n) for words, count in cause.between] == [("code against person", 1)]


def test_many_causes_and_judges_are_bounded(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reviews.selectors.disputes.MOST_CAUSES", 2)
    monkeypatch.setattr("reviews.selectors.disputes.MOST_JUDGES", 1)
    for name in ("one", "two", "three"):
        ingest(cast.system, [judged(name, criterion=name, a="pass", b="pass", c="pass")])

    page = look(client, cast, view="groups")

    assert [(len(cause.judges), cause.n_more_judges) for cause in page.causes] == [(1, 2)] * 2
    assert page.n_more_causes == 1
    client.force_login(cast.viewer)
    text = client.get(path(cast.system), {"view": "groups"}).content.decode()
    assert "2 more judges" in text
    assert "1 more criterion" in text


@pytest.mark.parametrize(
    ("totals", "state", "heading"),
    [
        (DisputeTotals(0, 0, (), ""), "open", "No open dispute"),
        (DisputeTotals(0, 0, (), ""), "over", "No dispute"),
        (DisputeTotals(1, 0, (), ""), "open", "1 dispute, it decides something"),
        (DisputeTotals(1, 2, (), ""), "open", "3 disputes, 1 of them decides something"),
        (
            DisputeTotals(0, 2, ((NoEffect.CODE_DECIDES, 2),), ""),
            "open",
            "2 disputes, none of them decides anything, because code decides their criteria",
        ),
        (
            DisputeTotals(0, 2, ((NoEffect.NOT_REQUIRED, 2),), "tone"),
            "open",
            "2 disputes, none of them decides anything, because nothing requires tone",
        ),
        (
            DisputeTotals(0, 2, ((NoEffect.BROKEN, 2),), "tone"),
            "all",
            "2 disputes, none of them decides anything, because the harness broke",
        ),
        (
            DisputeTotals(0, 2, ((NoEffect.BROKEN, 1), (NoEffect.MARKED, 1)), "tone"),
            "open",
            "2 disputes, none of them decides anything",
        ),
        (DisputeTotals(0, 2000, (), ""), "over", "2,000 disputes that are over"),
    ],
)
def test_the_heading_says_what_is_listed(totals: DisputeTotals, state: str, heading: str) -> None:
    assert heading_of(totals, state=state) == heading
    assert all(idle_words(each) for each in NoEffect)


# ---- as a file ----


def _csv(client: Client, user: Any, cast: Cast, **query: Any) -> list[dict[str, str]]:
    client.force_login(user)
    answer = client.get(f"{root(cast.system)}disputes.csv", query)
    assert answer.status_code == 200
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_file_holds_what_the_list_does(client: Client, cast: Cast) -> None:
    ingest(cast.system, [judged("=1+1", terse="pass"), tone("b")])
    Dispute.objects.filter(criterion="tone").update(closed_at=timezone.now())

    both = _csv(client, cast.viewer, cast)
    (idle,) = _csv(client, cast.viewer, cast, criterion="outcome")

    assert [line["criterion"] for line in both] == ["tone", "outcome"]
    dispute = Dispute.objects.get(criterion="outcome")
    assert idle == {
        "criterion": "outcome",
        "class": "outcome",
        "rubric_version": "",
        "task": "'=1+1",
        "family": "",
        "split": "",
        "release": "1.0",
        "run": dispute.trial.run.name,
        "trial": "0",
        "attempt": "1",
        "state": "open",
        "decides": "no",
        "why_not": "code_decides",
        "counting_graders_disagree": "no",
        "between": "code_judge",
        "pass": "terse 1",
        "fail": "state check",
        "unknown": "",
        "ruling": "",
        "opened_at": dispute.opened_at.isoformat(),
        "closed_at": "",
        "trial_id": str(dispute.trial.uuid),
        "dispute_id": str(dispute.uuid),
    }


def test_another_system_is_not_found(client: Client, cast: Cast) -> None:
    disputed(cast)
    client.force_login(cast.outsider)

    for place in ("disputes/", "disputes.csv", "disputes/decided/"):
        assert client.get(f"{root(cast.system)}{place}").status_code == 404
        assert client.get(f"{root(cast.other_system)}{place}").status_code == 200
    client.force_login(cast.outsider)
    page = visit(client, cast.outsider, path(cast.other_system), view="groups")
    assert (page.causes, page.rows) == ((), ())


# ---- what was decided ----


def test_decisions_are_listed_newest_first_with_their_corrections(
    client: Client, cast: Cast
) -> None:
    ingest(cast.system, [tone("a"), tone("b")])
    first, second = Dispute.objects.order_by("pk")
    wrong = rule(first, cast, "pass", reason=HOSTILE + "x" * 500)
    right = rule(first, cast, "fail", replaces=wrong, by=cast.second_reviewer)
    party = rule(second, cast, "insufficient_evidence", is_by_party=True, cited_steps=[])
    item = blind_item(second, cast)
    Label.objects.create(
        item=item, by=cast.reviewer, round=3, value="unknown", adjudication=party, given_at=NOW
    )

    page = visit(client, cast.viewer, f"{path(cast.system)}decided/")

    assert [
        (row.trial.label, row.ruling.label, row.ruling.state, row.by, row.notes)
        for row in page.rows
    ] == [
        ("b · trial 0", "insufficient evidence", "unresolved", "reviewer", (BY_PARTY, BLIND)),
        ("a · trial 0", "fail", "fail", "second_reviewer", ("cites 1 step",)),
        ("a · trial 0", "pass", "pass", "reviewer", ("corrected since", "cites 1 step")),
    ]
    _, later, earlier = page.rows
    assert (later.corrects.label, later.corrects.href) == (
        "corrects: pass",
        f"#decided-{wrong.uuid}",
    )
    assert earlier.corrected_by.href == f"#decided-{right.uuid}"
    assert (earlier.is_cut, len(earlier.reason), later.is_cut) == (True, 400, False)
    assert earlier.trial.href == f"{path(cast.system)}{first.uuid}/"
    client.force_login(cast.viewer)
    text = client.get(f"{path(cast.system)}decided/").content.decode()
    assert "<img src=x" not in text
    # The other reviewer may still be asked for a label of the item.
    blind = visit(client, cast.second_reviewer, f"{path(cast.system)}decided/")
    assert (blind.rows[0].hidden, blind.rows[0].ruling.label, blind.rows[0].reason) == (
        HIDDEN,
        "hidden",
        "",
    )
    mine = visit(client, cast.second_reviewer, f"{path(cast.system)}decided/", by="me")
    assert [row.ruling.label for row in mine.rows] == ["fail"]
    assert mine.heading == "What you decided"


def test_pages_of_decisions_go_on_from_each_other(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "reviews.selectors.decided_disputes.decided_disputes.__kwdefaults__",
        {"by_pk": None, "after": None, "before": None, "n": 2},
    )
    ingest(cast.system, [tone(f"t{n}") for n in range(3)])
    for dispute in Dispute.objects.order_by("pk"):
        rule(dispute, cast)

    first = visit(client, cast.viewer, f"{path(cast.system)}decided/")
    second = visit(client, cast.viewer, first.pager.next_url)

    assert (len(first.rows), len(second.rows)) == (2, 1)
    assert (first.pager.previous_url, second.pager.next_url) == ("", "")
    back = visit(client, cast.viewer, second.pager.previous_url)
    assert back.rows == first.rows


def test_without_decisions_it_says_so(client: Client, cast: Cast) -> None:
    page = visit(client, cast.viewer, f"{path(cast.system)}decided/")

    assert (page.rows, page.empty.heading) == ((), "Nothing is decided yet")
    assert page.tabs == ()
