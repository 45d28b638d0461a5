from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reviews.models import Calibration, CalibrationSet, Criterion, GraderVersion
from tests.support.calibrated import (
    RUBRIC,
    asked,
    judged_trials,
    labelled_set,
    read_of,
    said,
    twice,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit

pytestmark = pytest.mark.django_db

PEOPLE_SAY = ["pass"] * 30 + ["fail"] * 30


def labelled(
    cast: Cast,
    words: list[str] | None = None,
    people_say: list[str] | None = None,
    **more: Any,
) -> CalibrationSet:
    """Trials that the judge and, blind, two people looked at; the calibration is read."""
    people_say = PEOPLE_SAY if people_say is None else people_say
    trials = judged_trials(cast, people_say if words is None else words)
    made = labelled_set(
        cast.system,
        trials,
        twice(people_say),
        people=[cast.reviewer, cast.second_reviewer],
        digest=asked(cast),
        by=cast.reviewer,
        **{"now": timezone.now(), **more},
    )
    read_of(made, now=timezone.now())
    return made


def list_path(cast: Cast) -> str:
    return f"{root(cast.system)}judges/"


def card_path(cast: Cast, version: str = "m1/p1", criterion: str = RUBRIC) -> str:
    judge = GraderVersion.objects.get(grader__system=cast.system, version=version)
    on = Criterion.objects.get(system=cast.system, name=criterion)
    return f"{root(cast.system)}judges/{judge.pk}/{on.pk}/"


def test_a_system_without_judges_says_what_one_is(client: Client, cast: Cast) -> None:
    page = visit(client, cast.reviewer, list_path(cast))

    assert (page.heading, page.rows, page.notices, page.acts) == ("No judge yet", (), (), ())
    assert page.empty.heading == "No judge has given a verdict"
    assert page.empty.act.href == f"{root(cast.system)}labelling/new/"
    assert visit(client, cast.viewer, list_path(cast)).empty.act is None


def test_a_judge_nobody_labelled_does_not_vote_and_says_why(client: Client, cast: Cast) -> None:
    judged_trials(cast, ["pass", "fail", "pass"])

    (row,) = visit(client, cast.viewer, list_path(cast)).rows

    assert (row.judge, row.version, row.criterion) == ("judge", "m1/p1", RUBRIC)
    assert (row.status.label, row.votes) == ("exploratory", "does not vote")
    assert row.why == ("No status was read: no complete set of labels holds it against people yet.")
    assert (row.said, row.said_note, row.bound) == ("3 verdicts", "2 pass, 1 fail", "-")
    card = visit(client, cast.viewer, card_path(cast))
    assert (card.answer, card.status.label) == ("Its verdicts do not vote.", "exploratory")
    assert card.why == "Too few to tell: no set of labels that counts is complete."
    assert [number.value for number in card.numbers] == ["cannot tell"] * 4
    assert (card.table, card.chart, card.items, card.history) == (None, None, None, ())


def test_a_calibrated_judge_votes_until_its_date(client: Client, cast: Cast) -> None:
    made = labelled(cast)
    until = f"{made.completed_at + timedelta(days=90):%Y-%m-%d}"

    (row,) = visit(client, cast.viewer, list_path(cast)).rows
    card = visit(client, cast.viewer, card_path(cast))

    assert (row.status.label, row.votes, row.bound) == ("calibrated", "votes", "9.5%")
    assert row.bound_note == "0 of 30 items that people failed; 120 labels by 2 people"
    assert row.due.words.startswith(until)
    assert not row.due.is_due
    assert (card.answer, card.needs) == (f"Its verdicts vote until {until}.", ())
    assert [(n.label, n.value, n.detail, n.state) for n in card.numbers] == [
        ("False passes", "≤ 9.5%", "0 of 30 items that people failed", "pass"),
        ("False failures", "≤ 9.5%", "0 of 30 items that people passed", "pass"),
        ("Agreement", "100.0%", "60 of 60 random items", ""),
        ("Cohen's kappa", "1.00", "over 60 random items", ""),
    ]
    assert [(h.status.label, h.until, h.by) for h in card.history] == [
        ("calibrated", f"until {until}", "")
    ]
    assert card.notices == ()
    assert [cell.n for row in card.table.rows for cell in row[1:]] == ["30", "0", "0", "30"]


def test_every_number_leads_to_its_items(client: Client, cast: Cast) -> None:
    labelled(cast, ["pass"] * 28 + ["fail"] * 2 + ["pass"] * 6 + ["fail"] * 24)

    card = visit(client, cast.viewer, card_path(cast))
    false_pass, false_fail = card.numbers[:2]

    assert (card.status.label, card.answer) == ("failed", "Its verdicts do not vote.")
    assert (false_pass.value, false_pass.state) == ("≤ 35.7%", "fail")
    assert [link.label for link in false_pass.links] == ["6 false passes", "30 items"]
    assert [link.label for link in false_fail.links] == ["2 false failures", "30 items"]
    for link, n, notes in (
        (false_pass.links[0], 6, {"false pass"}),
        (false_pass.links[1], 25, {"false pass", ""}),
        (false_fail.links[0], 2, {"false failure"}),
    ):
        items = visit(client, cast.viewer, link.href.removesuffix("#items")).items
        assert (len(items.rows), {row.note for row in items.rows}) == (n, notes)
    hrefs = {cell.words: cell.href for row in card.table.rows for cell in row[1:]}
    shown = visit(client, cast.viewer, hrefs["false pass"].removesuffix("#items")).items
    assert (shown.title, shown.sentence) == (
        "Items: false passes",
        "6 items, blind labels that count",
    )
    assert client.get(shown.rows[0].trial.href).status_code == 200
    assert shown.rows[0].labels == "fail, fail"


def test_too_few_labels_tell_nothing_and_say_what_is_lacking(client: Client, cast: Cast) -> None:
    labelled(cast, people_say=["pass"] * 5 + ["fail"] * 5)

    card = visit(client, cast.viewer, card_path(cast))

    assert card.status.label == "exploratory"
    assert [number.value for number in card.numbers[:2]] == ["too few to tell"] * 2
    assert card.needs == ("40 more items",)
    assert card.why == ("Too few to tell: people and judge decided 10 items, and 50 are needed.")


def test_kappa_over_one_answer_cannot_be_told(client: Client, cast: Cast) -> None:
    labelled(cast, people_say=["pass"] * 60)

    card = visit(client, cast.viewer, card_path(cast))

    assert [(n.label, n.value) for n in card.numbers] == [
        ("False passes", "cannot tell"),
        ("False failures", "≤ 4.9%"),
        ("Agreement", "100.0%"),
        ("Cohen's kappa", "cannot tell"),
    ]
    assert card.needs == ("29 more items that people fail",)


def test_agreement_is_read_on_random_samples_only(client: Client, cast: Cast) -> None:
    labelled(cast, sampling="stratified")

    card = visit(client, cast.viewer, card_path(cast))

    assert card.status.label == "calibrated"
    assert [(n.value, n.detail) for n in card.numbers[2:]] == [
        ("cannot tell", "no item of a random sample")
    ] * 2
    facts = {fact.name: fact.value for fact in card.facts}
    assert facts["People pass"] == "cannot tell: no random sample"
    assert facts["People agree"] == "100.0% (60 of 60 items)"


def test_a_date_that_comes_near_is_reminded_of(client: Client, cast: Cast) -> None:
    long_ago = timezone.now() - timedelta(days=80)
    labelled(cast, now=long_ago)

    soon = visit(client, cast.viewer, list_path(cast))
    assert [notice.level for notice in soon.notices] == ["warning"]
    assert "The calibration of judge m1/p1 on truthful ends on" in soon.notices[0].sentence
    assert soon.rows[0].due.is_due


def test_what_a_stale_judge_said_before_its_date_votes_on(client: Client, cast: Cast) -> None:
    made = labelled(cast, now=timezone.now() - timedelta(days=100))
    until = f"{made.completed_at + timedelta(days=90):%Y-%m-%d}"

    page = visit(client, cast.viewer, list_path(cast))
    card = visit(client, cast.viewer, card_path(cast))

    assert [(row.status.label, row.votes) for row in page.rows] == [("stale", "does not vote")]
    assert page.notices[0].sentence == (
        f"The calibration of judge m1/p1 on truthful ended on {until}: what it says since does not "
        "vote. Label a new set."
    )
    assert card.answer == f"What it said until {until} votes; what it says since does not."
    assert card.history[0].status.label == "calibrated"


def test_earlier_versions_are_folded_under_the_newest(client: Client, cast: Cast) -> None:
    labelled(cast)
    ingest(cast.system, [record("t1", 90, verdicts=[said("pass", "m1/p2")])])

    page = visit(client, cast.viewer, list_path(cast))
    only = visit(client, cast.viewer, list_path(cast), status="stale")

    assert [(row.version, row.status.label) for row in page.rows] == [("m1/p2", "exploratory")]
    assert [(row.version, row.status.label) for row in page.rows[0].older] == [("m1/p1", "stale")]
    assert [(row.version, row.older) for row in only.rows] == [("m1/p1", ())]
    card = visit(client, cast.viewer, card_path(cast))
    assert [(each.label, each.help, each.is_current) for each in card.versions] == [
        ("m1/p2", "exploratory", False),
        ("m1/p1", "stale", True),
    ]
    assert [row.status.label for row in card.history] == ["stale", "calibrated"]


def test_the_list_is_filtered_by_status_and_criterion(client: Client, cast: Cast) -> None:
    labelled(cast)
    tone = verdict("pass", criterion="tone", grader="other", kind="model")
    ingest(cast.system, [record("t2", 0, verdicts=[tone])])
    other = Criterion.objects.get(system=cast.system, name="tone")

    def shown(**query: Any) -> list[str]:
        return [row.judge for row in visit(client, cast.viewer, list_path(cast), **query).rows]

    assert shown() == ["judge", "other"]
    assert shown(status="calibrated") == ["judge"]
    assert shown(criterion=other.pk) == ["other"]
    assert shown(status="nonsense", criterion="x") == ["judge", "other"]
    nothing = visit(client, cast.viewer, list_path(cast), status="failed")
    assert (nothing.rows, nothing.empty.heading) == ((), "No judge is like that")


def test_a_reviewer_reads_the_status_again(client: Client, cast: Cast) -> None:
    made = labelled(cast)
    client.force_login(cast.reviewer)
    path = card_path(cast)

    answer = client.post(f"{path}read", {"text": made.criterion_digest.hex}, follow=True)

    assert [str(each) for each in answer.context["messages"]] == ["Read: nothing changed."]
    assert Calibration.objects.count() == 1
    client.force_login(cast.engineer)
    assert client.post(f"{path}read").status_code == 403
    assert visit(client, cast.engineer, path).read_action == ""


def test_labels_that_came_since_are_told_and_read(client: Client, cast: Cast) -> None:
    made = labelled(cast)
    trials = judged_trials(cast, ["pass"] * 10, task="t2")
    labelled_set(
        cast.system,
        trials,
        twice(["pass"] * 10),
        people=[cast.reviewer, cast.second_reviewer],
        digest=made.criterion_digest,
        by=cast.reviewer,
        now=timezone.now(),
    )

    before = visit(client, cast.reviewer, card_path(cast))
    answer = client.post(before.read_action, dict(before.read_fields), follow=True)
    after = answer.context["page"]

    assert [notice.sentence for notice in before.notices] == [
        "Labels or verdicts changed since its status was read. Read it again."
    ]
    assert after.notices == ()
    assert [row.by for row in after.history] == ["reviewer", ""]
    assert after.numbers[1].detail == "0 of 40 items that people passed"


def test_other_systems_and_what_is_absent_answer_alike(client: Client, cast: Cast) -> None:
    labelled(cast)
    path = card_path(cast)
    foreign = path.replace(cast.system.slug, cast.other_system.slug)
    client.force_login(cast.outsider)
    absent = client.get(f"{root(cast.other_system)}judges/1/99999999999999999999/")
    assert (client.get(foreign).status_code, absent.status_code) == (404, 404)
    assert client.get(path).status_code == 404
    client.force_login(cast.reviewer)
    assert client.get(f"{path}?text=nonsense").status_code == 404
    assert client.post(f"{path}read", {"text": "nonsense"}).status_code == 404
    assert client.get(f"{path}?items=x&show=x&family=x&after=x&format=x").status_code == 200


def test_adjudications_and_imported_labels_stand_apart(client: Client, cast: Cast) -> None:
    trials = judged_trials(cast, ["pass"] * 10)
    labelled_set(
        cast.system,
        trials,
        [("fail",)] * 4 + [("pass",)] * 6,
        people=["a person elsewhere"],
        by=cast.engineer,
        is_imported=True,
        sampling="chosen",
    )

    card = visit(client, cast.viewer, card_path(cast))

    (apart,) = card.apart
    assert apart.title == "Against imported labels that nobody vouched for"
    assert [(f.label, f.value) for f in apart.figures] == [
        ("False passes", "4 of 4"),
        ("False failures", "0 of 6"),
        ("Agreement", "60.0%"),
        ("Cohen's kappa", "0.00"),
        ("People agree", "cannot tell"),
    ]
    assert [number.value for number in card.numbers] == ["cannot tell"] * 4
    assert card.status.label == "exploratory"
    shown = visit(client, cast.viewer, apart.link.href.removesuffix("#items")).items
    assert len(shown.rows) == 10


def test_items_are_exported_and_harmless(client: Client, cast: Cast) -> None:
    labelled(cast)
    path = card_path(cast)
    client.force_login(cast.viewer)

    lines = b"".join(client.get(f"{path}?format=csv").streaming_content).decode().splitlines()
    document = client.get(f"{path}?format=json").json()

    assert len(lines) == 61
    assert lines[1].startswith("judge,m1/p1,truthful,1,labelled,")
    assert lines[1].endswith(",pass,pass,pass,,yes,pass,right")
    assert (document["status"], document["votes"]) == ("calibrated", True)
    assert len(document["labelled"]["items"]) == 60


def test_hostile_names_are_shown_as_text(client: Client, cast: Cast) -> None:
    bad = verdict(
        "pass",
        criterion="=cmd|<b>\u202e",
        grader="<script>x</script>\u202e",
        kind="model",
        grader_version="<i>2</i>",
    )
    ingest(cast.system, [record("t1", 0, verdicts=[bad])])
    client.force_login(cast.reviewer)
    judge = GraderVersion.objects.get(version="<i>2</i>")
    on = Criterion.objects.get(system=cast.system, name__startswith="=cmd")

    for path in (list_path(cast), f"{root(cast.system)}judges/{judge.pk}/{on.pk}/"):
        html = client.get(path).content.decode()
        assert "<script>x" not in html
        assert "<i>2</i>" not in html
        assert "\u202e" not in html


@pytest.mark.parametrize("n", [1, 3])
def test_the_list_takes_the_same_queries_whatever_it_lists(
    client: Client, cast: Cast, n: int
) -> None:
    ingest(
        cast.system,
        [
            record("t1", number, verdicts=[said("pass", f"m{number}") for number in range(n)])
            for number in range(n)
        ],
    )
    client.force_login(cast.viewer)
    assert n_queries(client, list_path(cast)) == 8


@pytest.mark.parametrize("n", [1, 3])
def test_a_card_takes_the_same_queries_whatever_it_lists(
    client: Client, cast: Cast, n: int
) -> None:
    labelled(cast, people_say=["pass"] * n)
    client.force_login(cast.reviewer)
    assert n_queries(client, card_path(cast)) == 19
