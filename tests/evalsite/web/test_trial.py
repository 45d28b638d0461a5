from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests.support.cast import Cast
from tests.support.evidence import ingest, jsonl, receive, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import System, Trial
from traces.services.uploads import stored_path

pytestmark = pytest.mark.django_db


def trial_path(system: System, label: str = "0") -> str:
    trial = Trial.objects.get(system=system, label=label)
    return f"{root(system)}trials/{trial.uuid}/"


def test_a_transcript_pairs_calls_with_their_results(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=(("get_order", {"order": "A-1"}),))])
    path = trial_path(cast.system)
    page = visit(client, cast.viewer, path)

    assert [(step.number, step.actor) for step in page.steps] == [
        (1, "user"),
        (2, "agent"),
        (4, "agent"),
    ]
    (call,) = page.steps[1].calls
    assert (call.name, call.outcome, call.kind) == ("get_order", "committed", "write")
    assert [(a.name, a.value) for a in call.arguments] == [("order", '"A-1"')]
    assert (call.result.text, call.result_step) == ("ok", 3)
    assert page.steps[1].href == f"{path}?step=2#step-2"
    assert [(cell.label, cell.href) for cell in page.cells] == [
        ("order", "#step-2"),
        ("msg", "#step-4"),
    ]
    assert [link.label for link in page.sub] == [
        "Release 1.0",
        "run default",
        "4 steps",
        "1 tool call",
    ]


def test_a_rejected_attempt_is_marked(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, result="Error: card declined")])
    page = visit(client, cast.viewer, trial_path(cast.system))

    assert page.steps[1].calls[0].outcome == "rejected"
    assert page.steps[1].is_error
    assert page.cells[0].n_rejected == 1


def test_user_side_calls_are_told_from_the_agents(client: Client, cast: Cast) -> None:
    one = record("t1", 0, calls=())
    one["messages"].append(
        {
            "role": "user",
            "content": None,
            "tool_calls": [{"id": "u1", "function": {"name": "toggle", "arguments": "{}"}}],
        }
    )
    ingest(cast.system, [one])
    page = visit(client, cast.viewer, trial_path(cast.system))

    assert [call.by_user for call in page.steps[-1].calls] == [True]
    assert [cell.name for cell in page.cells] == [""]


def test_arguments_that_are_no_object_are_shown_as_they_came(client: Client, cast: Cast) -> None:
    one = record("t1", 0, calls=(("a", {}), ("b", {}), ("c", {})))
    functions = [one["messages"][at]["tool_calls"][0]["function"] for at in (1, 3, 5)]
    functions[0]["arguments"] = "{broken"
    functions[1]["arguments"] = "[1, 2]"
    functions[2].pop("arguments")
    ingest(cast.system, [one])
    page = visit(client, cast.viewer, trial_path(cast.system))
    calls = [step.calls[0] for step in page.steps if step.calls]

    assert [(call.raw.text if call.raw else None, call.raw_note) for call in calls] == [
        ("{broken", "Not JSON: kept as it came."),
        ("[1, 2]", "Not a JSON object."),
        (None, "The arguments were not recorded."),
    ]


def test_verdicts_show_what_counts_and_what_does_not(client: Client, cast: Cast) -> None:
    verdicts = [
        verdict("pass", score=1.0, rationale="Right.", evidence=[{"step": 2}, {"step": 99}]),
        verdict("fail", grader="judge", kind="model", criterion="tone", grader_version="m1"),
        verdict("pass", grader="Ann", kind="human", criterion="tone"),
        verdict("maybe", criterion="odd", mandatory=False),
    ]
    ingest(cast.system, [record("t1", 0, verdicts=verdicts)])
    path = trial_path(cast.system)
    page = visit(client, cast.viewer, path)
    shown = [(v.criterion, v.word, v.counts, v.why_not, v.score) for v in page.verdicts]

    assert shown == [
        ("outcome", "pass", True, "", "1"),
        ("odd", "error", True, "", ""),
        ("tone", "fail", False, "the judge is not calibrated for this criterion", ""),
        ("tone", "pass", False, "it came in a file, and no reviewer vouched for it", ""),
    ]
    assert [(link.label, link.href) for link in page.verdicts[0].cited] == [
        ("step 2", "#step-2"),
        ("step 99", ""),
    ]
    assert page.verdicts[1].raw_word == "maybe"
    assert page.steps[1].cited_by == ("outcome by state check",)
    assert page.disposition.value == "unresolved"
    assert page.disposition.next_actions[0].startswith("Calibrate judge tone.")
    assert [(flag.reason, flag.criterion, flag.level) for flag in page.flags] == [
        ("state check cites step 99; the transcript has 4 steps.", "outcome", "warning"),
        (
            "The verdict of Ann came in a file; it does not count until a reviewer vouches for it.",
            "tone",
            "info",
        ),
    ]
    assert [(notice.sentence, notice.place) for notice in page.notices] == [
        (
            "state check said 'maybe', which is no verdict that can be read; it counts as an error.",
            "odd",
        )
    ]


def test_a_broken_harness_is_no_failure(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, error="container died", verdicts=[])])
    page = visit(client, cast.viewer, trial_path(cast.system))

    assert page.disposition.value == "harness-error"
    assert page.notices[0].sentence == "The harness broke: container died"


def test_states_are_compared(client: Client, cast: Cast) -> None:
    before = {"orders": {"A": {"paid": False}, "B": {}}, "refunds": []}
    after = {"orders": {"A": {"paid": True}, "B": {}}, "refunds": [{"order": "A"}]}
    ingest(
        cast.system,
        [
            record("t1", 0, initial_state=before, final_state=after, expected_state=after),
            record("t1", 1, initial_state=before, final_state=before, expected_state=after),
            record("t1", 2, initial_state=before),
            record("t1", 3),
        ],
    )
    states = [visit(client, cast.viewer, trial_path(cast.system, str(n))).state for n in range(4)]

    assert [(c.act, c.pointer, c.before, c.after) for c in states[0].changes] == [
        ("changed", "/orders/A/paid", "false", "true"),
        ("added", "/refunds/0", "null", '{"order": "A"}'),
    ]
    assert states[0].sentence == (
        "2 differences in 2 collections, 3 records. "
        "The final state is the one that the record expects."
    )
    assert states[1].sentence == (
        "No difference in 2 collections, 2 records. "
        "It differs from the state that the record expects in 2 places."
    )
    assert states[2].sentence == (
        "The final state was not recorded, so nobody can say what changed."
    )
    assert states[3] is None


def long_record(n: int, content: str = "hello") -> dict[str, Any]:
    one = record("t1", 0)
    one["messages"] = [
        {"role": "assistant" if at % 2 else "user", "content": f"{content} {at}"} for at in range(n)
    ]
    return one


def test_a_long_trial_comes_in_pages(client: Client, cast: Cast) -> None:
    ingest(cast.system, [long_record(450)])
    path = trial_path(cast.system)
    first = visit(client, cast.viewer, path)
    middle = visit(client, cast.viewer, path, step="250")
    beyond = visit(client, cast.viewer, path, step="9999")

    assert (first.pager.words, first.pager.next_url) == (
        "steps 1 to 200 of 450",
        f"{path}?from=201",
    )
    assert (middle.steps[0].number, middle.steps[-1].number) == (201, 400)
    assert middle.pager.previous_url == f"{path}?from=1"
    assert beyond.steps[-1].number == 450
    assert beyond.notices[-1].sentence == "There is no step 9,999; the transcript has 450 steps."


def test_calls_and_results_meet_across_pages(client: Client, cast: Cast) -> None:
    one = long_record(600)
    call = {"id": "c", "type": "function", "function": {"name": "late", "arguments": "{}"}}
    one["messages"][199] = {"role": "assistant", "content": None, "tool_calls": [call]}
    one["messages"][200] = {"role": "tool", "tool_call_id": "c", "content": "here"}
    far = {"id": "f", "type": "function", "function": {"name": "far", "arguments": "{}"}}
    one["messages"][3] = {"role": "assistant", "content": None, "tool_calls": [far]}
    one["messages"][590] = {"role": "tool", "tool_call_id": "f", "content": "Error: far"}
    ingest(cast.system, [one])
    path = trial_path(cast.system)
    first = visit(client, cast.viewer, path)
    second = visit(client, cast.viewer, path, step="201")
    last = visit(client, cast.viewer, path, step="591")
    calls = {call.name: call for step in first.steps for call in step.calls}

    assert (calls["late"].outcome, calls["late"].result.text) == ("committed", "here")
    assert calls["late"].result_href == f"{path}?step=201#step-201"
    assert (calls["far"].outcome, calls["far"].result.text) == ("rejected", "Error: far")
    assert second.steps[0].note == "the result of late in step 200"
    assert [step.note for step in last.steps if step.number == 591] == [
        "the result of far in step 4"
    ]


def test_huge_text_is_shortened_and_can_be_had_whole(
    client: Client, cast: Cast, settings: Settings
) -> None:
    settings.EVALSITE_PREVIEW_MAX_BYTES = 1000
    text = "ä" * 5000 + "\u202e<script>"
    ingest(cast.system, [record("t1", 0, result=text)])
    path = trial_path(cast.system)
    page = visit(client, cast.viewer, path)
    block = page.steps[1].calls[0].result

    assert (block.is_cut, block.size, block.text) == (True, 10_011, "ä" * 500)
    answer = client.get(block.full_url)
    assert b"".join(answer.streaming_content).decode() == text
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["Content-Disposition"].startswith("attachment;")
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_page_of_much_text_stays_small(client: Client, cast: Cast) -> None:
    ingest(cast.system, [long_record(200, "<\u202e" * 300)])
    client.force_login(cast.viewer)
    assert len(client.get(trial_path(cast.system)).content) < 500_000


def test_bytes_that_no_page_can_hold_are_marked(client: Client, cast: Cast) -> None:
    one = record("t1", 0, result="nul \x00 half \ud83d end \x1b[2J")
    ingest(cast.system, jsonl([one]))
    client.force_login(cast.viewer)
    text = client.get(trial_path(cast.system)).content.decode()

    assert "\x00" not in text
    assert "\x1b" not in text
    assert "U+0000" in text
    assert "U+D83D" in text


def test_the_raw_record_comes_out_of_the_stored_upload(client: Client, cast: Cast) -> None:
    records = [record("t1", n, note=f"n{n}") for n in range(3)]
    ingest(cast.system, records)
    client.force_login(cast.viewer)
    answer = client.get(trial_path(cast.system, "1") + "raw")

    assert json.loads(b"".join(answer.streaming_content)) == records[1]
    assert answer["Content-Disposition"].startswith("attachment;")


def test_the_agents_nth_message_leads_to_its_step(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=(("a", {}), ("b", {})))])
    path = trial_path(cast.system)
    client.force_login(cast.viewer)

    assert client.get(path, {"agent": "2"})["Location"] == f"{path}?step=4#step-4"
    assert client.get(path, {"agent": "9"}).status_code == 404


@pytest.mark.parametrize("place", ["steps/0/content", "steps/5/content", "steps/2/content?call=7"])
def test_a_step_that_does_not_exist_is_404(place: str, client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    client.force_login(cast.viewer)
    assert client.get(trial_path(cast.system) + place).status_code == 404


def test_trials_lead_to_their_neighbours_and_to_trials_of_the_same_path(
    client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("t1", n) for n in range(3)])
    page = visit(client, cast.viewer, trial_path(cast.system, "1"))

    assert page.previous.href == trial_path(cast.system, "0")
    assert page.next.href == trial_path(cast.system, "2")
    assert page.same_path.label == "same path as 2 other passing trials"


def test_an_earlier_attempt_says_that_a_later_one_stands(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, error="x", verdicts=[]), record("t1", 0, attempt=2)])
    first = Trial.objects.get(attempt=1)
    page = visit(client, cast.viewer, f"{root(cast.system)}trials/{first.uuid}/")
    assert page.notices[0].sentence == "A later attempt stands for this trial."
    assert page.disposition.next_actions == ()


def test_query_count_of_a_trial_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    client.force_login(cast.viewer)
    one = n_queries(client, trial_path(cast.system))
    many = [verdict("pass", criterion=f"c{n}") for n in range(9)]
    calls = [(f"tool-{n}", {}) for n in range(9)]
    ingest(cast.system, [record("t1", 1, calls=calls, verdicts=many), record("t1", 2)])

    assert (one, n_queries(client, trial_path(cast.system, "1"))) == (16, 16)


def test_a_trial_that_does_not_exist_is_404(client: Client, cast: Cast) -> None:
    receive(cast.system, b"")
    client.force_login(cast.viewer)
    assert client.get(f"{root(cast.system)}trials/{uuid.uuid4()}/").status_code == 404


def test_a_call_says_how_long_it_took_where_both_times_are_known(
    client: Client, cast: Cast
) -> None:
    one = record("t1", 0, calls=(("a", {}), ("b", {}), ("c", {})))
    times = ("2026-01-01T10:00:00", "2026-01-01T10:00:01.5", "later", "2026-01-01T10:00:00")
    for place, at in zip((1, 2, 3, 4), times, strict=True):
        one["messages"][place]["timestamp"] = at
    ingest(cast.system, [one])
    page = visit(client, cast.viewer, trial_path(cast.system))
    calls = [step.calls[0] for step in page.steps if step.calls]

    assert [None if call.seconds is None else str(call.seconds) for call in calls] == [
        "1.500",
        None,
        None,
    ]


def test_a_raw_record_that_is_gone_is_404(client: Client, cast: Cast) -> None:
    job = ingest(cast.system, [record("t1", 0)])
    stored_path(job.upload).unlink()
    client.force_login(cast.viewer)

    assert client.get(trial_path(cast.system) + "raw").status_code == 404
    upload = f"{root(cast.system)}uploads/{job.upload.uuid}/raw"
    assert client.get(upload).status_code == 404


def test_the_arguments_of_one_call_can_be_had_whole(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=(("a", {"text": "x" * 5000}),))])
    path = trial_path(cast.system)
    page = visit(client, cast.viewer, path)
    call = page.steps[1].calls[0]
    answer = client.get(f"{path}steps/2/content", {"call": "0"})

    assert (call.arguments, call.raw.is_long) == ((), True)
    assert json.loads(b"".join(answer.streaming_content))["function"]["name"] == "a"
