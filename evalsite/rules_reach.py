"""What a drafted change of rules would do, and which rules the stored paths suggest; by a worker.

Both read only, hold nothing back, and are safe to run twice: a row says what is asked for, and the
last finished answer stands in it until there is another.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from django.db.models import QuerySet
from django.utils import timezone

from evalsite.background import begun
from evalsite.common.locks import exclusive
from traces.core.rule_documents import parse_rule_set
from traces.core.rule_effects import RulesEffect, effect_document
from traces.core.rule_suggestions import RuleSuggestions, suggestions_document
from traces.models import BackgroundWork, RulesPreview, RulesSuggestions, System, WorkState
from traces.selectors.rule_reach import Progress, RulesMovedError, rules_effect
from traces.selectors.rule_suggestions import suggested_rules
from traces.selectors.rules import rules_in

log = logging.getLogger("evalsite.rules")

NOTED_EVERY_SECONDS = 0.5
_MOST_ROUNDS = 5

Work = TypeVar("Work", bound=BackgroundWork)


def work_out_preview(preview_id: int) -> None:
    """Find out what a draft would do to the passing paths.

    Nothing happens where that is known, or another worker is at it. Raises what the database
    raises; the sweeper tries again.
    """
    with exclusive("evalsite.preview", preview_id) as is_mine:
        rows = RulesPreview.objects.filter(pk=preview_id)
        preview = begun(rows, preview_id, now=timezone.now()) if is_mine else None
        if preview is None:
            return
        began = time.monotonic()
        effect = _effect_of(preview, _noted(rows))
        now = timezone.now()
        rows.filter(state=WorkState.WORKING.value).update(
            result=effect_document(effect), **_done(now)
        )
        log.info(
            "preview of rules worked out",
            extra={
                "preview": str(preview.uuid),
                "trials": effect.n_trials,
                "tasks_changed": effect.n_tasks_changed,
                "seconds": round(time.monotonic() - began, 2),
            },
        )


def _effect_of(preview: RulesPreview, progress: Progress) -> RulesEffect:
    base = rules_in(preview.base)
    changed, findings = parse_rule_set(preview.document)
    if findings:
        raise ValueError(f"preview {preview.pk} is not whole: {findings[0].sentence}")
    return _while_rules_move(
        lambda: rules_effect(_system(preview.system_id), base, changed, progress=progress)
    )


def work_out_suggestions(rules_id: int) -> None:
    """Look for rules on top of a version, again and again while new evidence asks for it.

    A version that pages do not show has no suggestions: its row is put aside.
    """
    with exclusive("evalsite.suggestions", rules_id) as is_mine:
        rows = RulesSuggestions.objects.filter(pk=rules_id)
        while is_mine and begun(rows, rules_id, now=timezone.now()) is not None:
            _search(rows, rules_id)


def _search(rows: QuerySet[RulesSuggestions], rules_id: int) -> None:
    row = rows.select_related("rules").get()
    system, began = _system(row.rules.system_id), time.monotonic()
    found: RuleSuggestions | None = None
    if system.shown_rules_id == rules_id:
        try:
            found = suggested_rules(system, row.rules, progress=_noted(rows))
        except RulesMovedError:
            log.info("suggestions put aside", extra=_ids(system, row))
    now = timezone.now()
    if found is None:
        rows.filter(state=WorkState.WORKING.value).update(
            state=WorkState.CANCELLED.value, touched_at=now, finished_at=now
        )
        return
    # A row that waits again was asked for meanwhile, and is left waiting: the answer is older.
    rows.update(result=suggestions_document(found), result_at=now, touched_at=now)
    rows.filter(state=WorkState.WORKING.value).update(**_done(now))
    log.info(
        "suggestions of rules found",
        extra={
            **_ids(system, row),
            "suggestions": len(found.suggestions),
            "paths": found.n_paths,
            "seconds": round(time.monotonic() - began, 2),
        },
    )


def _while_rules_move(effect: Callable[[], RulesEffect]) -> RulesEffect:
    """An answer under one version of the shown rules: begun anew when pages show another."""
    for _ in range(_MOST_ROUNDS - 1):
        try:
            return effect()
        except RulesMovedError:
            log.info("preview of rules begins anew")
    return effect()


def _noted(rows: QuerySet[Work]) -> Progress:
    """Progress that is written into a row, now and then."""
    noted_at = 0.0

    def note(n_done: int, n_total: int) -> None:
        nonlocal noted_at
        if time.monotonic() - noted_at < NOTED_EVERY_SECONDS and n_done < n_total:
            return
        noted_at = time.monotonic()
        rows.filter(state=WorkState.WORKING.value).update(
            n_done=n_done, n_total=n_total, touched_at=timezone.now()
        )

    return note


def _done(now: datetime) -> dict[str, object]:
    return {"state": WorkState.DONE.value, "touched_at": now, "finished_at": now}


def _system(pk: int) -> System:
    """The system as it is now, with the rules that its pages show."""
    return System.objects.select_related("shown_rules").get(pk=pk)


def _ids(system: System, row: RulesSuggestions) -> dict[str, object]:
    return {"system": system.slug, "rules": row.rules.number}
