"""Contract versions read by id and by task."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.cast import Cast
from tests.support.regrades import proposed
from traces.models import ContractVersion, Task
from traces.selectors.contracts import (
    contract_of_stored,
    contracts_in_effect,
    contracts_named,
)

pytestmark = pytest.mark.django_db

TEXT = "task: {}\nrequired: [{{id: looked, call: look}}]"


def test_versions_are_read_in_one_query(cast: Cast) -> None:
    proposed(cast, "---\n".join(f"{TEXT.format(name)}\n" for name in ("t1", "t2", "t3")))
    versions = {version.pk: version for version in ContractVersion.objects.all()}
    for wanted in ([min(versions)], list(versions)):
        with CaptureQueriesContext(connection) as seen:
            found = contracts_named(wanted)
        assert len(seen) == 1
        assert {
            pk: (one.identity, one.number, one.task_pk, one.key) for pk, one in found.items()
        } == {pk: (versions[pk].uuid, 1, versions[pk].task_id, str(pk)) for pk in wanted}
    assert contracts_named([]) == {}


def test_a_task_has_the_contract_that_its_pages_decide_by(cast: Cast) -> None:
    proposed(cast, f"{TEXT.format('t1')}\n---\n{TEXT.format('t2')}")
    version = ContractVersion.objects.get(task__task_id="t1")
    tasks = list(Task.objects.values_list("pk", flat=True))
    assert contracts_in_effect(tasks) == {}

    Task.objects.filter(pk=version.task_id).update(contract=version)
    assert contracts_in_effect(tasks) == {
        version.task_id: contracts_named([version.pk])[version.pk]
    }


def test_a_stored_text_that_is_not_whole_is_an_error_of_ours() -> None:
    with pytest.raises(ValueError, match="a stored contract is not whole: line 2"):
        contract_of_stored("task: [")
