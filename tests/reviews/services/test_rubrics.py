from __future__ import annotations

import uuid

import pytest
from django.db import DatabaseError, transaction

from reviews.models import Adjudication, Criterion, RubricRequest, RubricVersion
from reviews.permissions.rubrics import NOT_A_WRITER
from reviews.selectors.rubrics import (
    KeptText,
    ListedRubric,
    RubricUse,
    asked_texts,
    listed_rubrics,
    rubric_text_of,
    rubric_texts,
)
from reviews.services.rubrics import (
    LONGEST_TEXT,
    RubricDeniedError,
    RubricError,
    close_request,
    open_request,
    write_version,
)
from tests.support.cases import LATER, NOW
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from traces.models import Task, Trial, User

pytestmark = pytest.mark.django_db

TEXT = """
task: t1
outcome:
  - unchanged: true
semantic:
  - {rubric: tone, version: "2", question: "Is it polite?"}
"""


def written(
    cast: Cast, *, version: str = "1", text: str = "Be polite.", **other: object
) -> RubricVersion:
    values: dict[str, object] = {"name": "tone", "reason": "First.", "by": cast.engineer} | other
    return write_version(cast.system, version=version, text=text, now=NOW, **values)  # type: ignore[arg-type]


def unclear(cast: Cast, by: User) -> Adjudication:
    """An adjudication that finds a rubric unclear."""
    ingest(cast.system, [record("t1", 0, verdicts=[verdict(criterion="tone")])])
    trial = Trial.objects.get(system=cast.system)
    return Adjudication.objects.create(
        system=cast.system,
        trial=trial,
        criterion=Criterion.objects.get(system=cast.system, name="tone"),
        rubric_version="1",
        ruling="rubric_unclear",
        reason="Polite to whom?",
        cited_steps=[],
        seen=[],
        evidence_order=0,
        evidence_digest=uuid.uuid4(),
        is_by_party=False,
        by=by,
        decided_at=NOW,
    )


def test_a_text_is_kept_by_its_version_and_never_changed(cast: Cast) -> None:
    first, again = written(cast), written(cast)
    second = written(cast, version="2", text="Be polite to the user.", by=cast.reviewer)

    assert again.pk == first.pk
    assert [(t.version, t.text, t.by_name) for t in rubric_texts(first.rubric_id)] == [
        ("2", "Be polite to the user.", "reviewer"),
        ("1", "Be polite.", "engineer"),
    ]
    kept = KeptText(first.rubric_id, "2", second.text)
    assert rubric_text_of(cast.system.pk, "tone", "2") == kept
    assert rubric_text_of(cast.system.pk, "tone", "") is None  # two of them: which one is not told
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        RubricVersion.objects.filter(pk=first.pk).update(text="x")


def test_another_text_under_the_same_version_is_refused(cast: Cast) -> None:
    written(cast)
    with pytest.raises(RubricError, match="engineer wrote another text of version 1"):
        written(cast, text="Be short.", by=cast.reviewer)
    assert RubricVersion.objects.get().text == "Be polite."


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"name": " "}, "The name of a rubric is missing."),
        ({"version": "\u200b"}, "The version of a rubric is missing."),
        ({"text": ""}, "The text of a rubric is missing."),
        ({"reason": "\n"}, "A reason is missing."),
        ({"text": "x" * (LONGEST_TEXT + 1)}, "The text of a rubric has at most 20,000 characters."),
    ],
)
def test_a_field_is_neither_empty_nor_too_long(
    cast: Cast, other: dict[str, str], sentence: str
) -> None:
    with pytest.raises(RubricError) as refused:
        written(cast, **other)  # type: ignore[arg-type]
    assert str(refused.value) == sentence
    assert not RubricVersion.objects.exists()


@pytest.mark.parametrize("who", ["owner", "viewer", "outsider"])
def test_only_engineers_and_reviewers_write(cast: Cast, who: str) -> None:
    with pytest.raises(RubricDeniedError, match=NOT_A_WRITER):
        written(cast, by=getattr(cast, who))


def test_a_new_text_answers_requests_and_closes_them(cast: Cast) -> None:
    adjudication = unclear(cast, cast.reviewer)
    asked, again = open_request(adjudication), open_request(adjudication)
    written(cast)
    answer = written(cast, version="2", text="Be polite to the user.", answers=[asked.pk])

    assert again.pk == asked.pk
    assert asked_texts(cast.system.pk) == ()
    (closed,) = asked_texts(cast.system.pk, ["tone"], is_open=False)
    assert (closed.answer, closed.closed_by, closed.closed_at) == (answer.version, "engineer", NOW)
    assert (closed.reason, closed.task_id) == ("Polite to whom?", "t1")


def test_a_closed_or_foreign_request_is_no_longer_answered(cast: Cast) -> None:
    asked = open_request(unclear(cast, cast.reviewer))
    close_request(asked, reason="The contract says it.", by=cast.engineer, now=LATER)

    with pytest.raises(RubricError, match="is closed already, or asks about another rubric"):
        written(cast, answers=[asked.pk])
    assert not RubricVersion.objects.exists()
    with pytest.raises(RubricError, match="This request was closed at"):
        close_request(asked, reason="Again.", by=cast.engineer, now=LATER)
    with pytest.raises(RubricDeniedError, match=NOT_A_WRITER):
        close_request(asked, reason="Again.", by=cast.owner, now=LATER)
    row = RubricRequest.objects.get(pk=asked.pk)
    assert (row.closing_reason, row.answered_by) == ("The contract says it.", None)


def test_the_list_joins_what_is_written_and_what_contracts_ask_for(cast: Cast) -> None:
    open_request(unclear(cast, cast.reviewer))
    contract_in_effect(cast.system, TEXT, by=cast.engineer)
    kept = written(cast, name="brevity")
    task = Task.objects.get(system=cast.system, task_id="t1")

    assert listed_rubrics(cast.system.pk) == (
        ListedRubric(kept.rubric_id, "brevity", 1, "1", (), 0),
        ListedRubric(
            None,
            "tone",
            0,
            "",
            (RubricUse("2", "Is it polite?", 1, (("t1", task.uuid),)),),
            1,
        ),
    )
    assert [row.n_tasks for row in listed_rubrics(cast.system.pk)] == [0, 1]
    assert listed_rubrics(cast.other_system.pk) == ()
