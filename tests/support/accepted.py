"""Accepted paths, and rules that change under them."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from evalsite.rebuilding import rebuild
from reviews.models import AcceptedPath
from reviews.services.accepted_paths import accept_path
from tests.support.cast import Cast
from traces.core.paths import PathLevel
from traces.core.rule_documents import rule_set_document
from traces.core.rules import RuleSet
from traces.models import RulesVersion, System, Task, Trial


def task_of(system: System, task_id: str = "t1") -> Task:
    """The task of that id."""
    return Task.objects.get(system=system, task_id=task_id)


def trial_of(
    system: System, label: str = "0", *, task_id: str = "t1", release: str = "1.0"
) -> Trial:
    """The trial of that label."""
    return Trial.objects.get(
        system=system, task__task_id=task_id, release__name=release, label=label
    )


def accept(
    cast: Cast,
    label: str = "0",
    *,
    task_id: str = "t1",
    release: str = "1.0",
    level: PathLevel = PathLevel.SEQUENCE,
    **more: Any,
) -> AcceptedPath:
    """The path of a trial, accepted by the engineer."""
    trial = trial_of(cast.system, label, task_id=task_id, release=release)
    asked: dict[str, Any] = {
        "trial": trial.uuid,
        "level": level,
        "messages": False,
        "reason": "Looked at it.",
        "by": cast.engineer,
        "now": timezone.now(),
        **more,
    }
    return accept_path(task_of(cast.system, task_id), **asked)


def show_rules(system: System, rules: RuleSet) -> RulesVersion:
    """A further version of the rules, worked out for every trajectory and shown."""
    version = RulesVersion.objects.create(
        system=system,
        number=system.rules_versions.count() + 1,
        document=rule_set_document(rules),
        reason="For the test.",
    )
    System.objects.filter(pk=system.pk).update(shown_rules=version)
    system.refresh_from_db()
    rebuild(system, say=lambda line: None)
    return version
