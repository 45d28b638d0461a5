"""What else an address asks of the list of trials: the trials behind a figure of a system's pages."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.http import HttpRequest

from traces.core.records import CriterionClass
from traces.models import Split
from traces.selectors.trial_list import TrialEnding, TrialFilter, TrialScope
from traces.web.addresses import Value
from traces.web.asking import text_in

SCOPE_WORDS = {
    TrialScope.FIGURES: "only trials that figures count",
    TrialScope.TUNING: "only trials of split tuning",
    TrialScope.FAULT: "only trials with an injected fault",
    TrialScope.PRODUCTION: "only production traces",
}
_ENDING_WORDS = {
    TrialEnding.HANDED_OVER: "handed over to a person",
    TrialEnding.NO_CHANGE: "ended without any change",
}
_OUTCOME_WORDS = {
    "pass": "reached the outcome",
    "fail": "missed the outcome",
    "unknown": "outcome not decided",
}
_CLEAN_WORDS = {
    "pass": "rule-clean",
    "fail": "not rule-clean",
    "unknown": "not decided whether rule-clean",
}
_SPLITS = {"none": "", **{split.value: split.value for split in Split}}


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is asked beyond the filter form. Nonsense asks for nothing."""

    scope: TrialScope | None
    family: str
    split: str  # as in the address: "none" for tasks without one
    environment: str
    failed: str
    still_open: str
    failed_class: str
    harm: str
    any_harm: bool
    outcome: str
    clean: str
    action: str
    ending: TrialEnding | None

    @classmethod
    def of(cls, request: HttpRequest) -> Conditions:
        """The conditions that the query of an address names."""
        query = request.GET
        scope, ending = query.get("scope", ""), query.get("ended", "")
        failed_class = query.get("class", "")
        outcome, clean = query.get("outcome", ""), query.get("clean", "")
        return cls(
            scope=TrialScope(scope) if scope in set(TrialScope) else None,
            family=text_in(request, "family", most=200),
            split=split if (split := query.get("split", "")) in _SPLITS else "",
            environment=text_in(request, "environment", most=64),
            failed=text_in(request, "failed"),
            still_open=text_in(request, "open"),
            failed_class=failed_class if failed_class in set(CriterionClass) else "",
            harm=text_in(request, "harm", most=200),
            any_harm=query.get("prohibited") == "1",
            outcome=outcome if outcome in _OUTCOME_WORDS else "",
            clean=clean if clean in _CLEAN_WORDS else "",
            action=text_in(request, "action", most=24),
            ending=TrialEnding(ending) if ending in set(TrialEnding) else None,
        )

    def narrow(self, chosen: TrialFilter) -> TrialFilter:
        """The filter with these conditions on top."""
        return replace(
            chosen,
            scope=self.scope,
            family=self.family or None,
            split=_SPLITS[self.split] if self.split else None,
            environment=self.environment,
            failed=self.failed,
            still_open=self.still_open,
            failed_class=self.failed_class,
            harm=self.harm,
            any_harm=self.any_harm,
            outcome=self.outcome,
            rule_clean=self.clean,
            action=self.action,
            ending=self.ending,
        )

    @property
    def values(self) -> dict[str, Value]:
        """As the query of an address has them."""
        return {
            "scope": self.scope.value if self.scope else "",
            "family": self.family,
            "split": self.split,
            "environment": self.environment,
            "failed": self.failed,
            "open": self.still_open,
            "class": self.failed_class,
            "harm": self.harm,
            "prohibited": "1" if self.any_harm else "",
            "outcome": self.outcome,
            "clean": self.clean,
            "action": self.action,
            "ended": self.ending.value if self.ending else "",
        }

    @property
    def words(self) -> tuple[str, ...]:
        """Each condition as a person reads it."""
        split = "no split" if self.split == "none" else f"split {self.split.replace('_', ' ')}"
        said = (
            SCOPE_WORDS[self.scope] if self.scope else "",
            f"family {self.family}" if self.family else "",
            split if self.split else "",
            f"environment {self.environment}" if self.environment else "",
            f"failed {self.failed}" if self.failed else "",
            f"{self.still_open} is open" if self.still_open else "",
            f"failed by {self.failed_class}" if self.failed_class else "",
            f"prohibited attempt, harm {self.harm}" if self.harm else "",
            "with a prohibited attempt" if self.any_harm else "",
            _OUTCOME_WORDS.get(self.outcome, ""),
            _CLEAN_WORDS.get(self.clean, ""),
            f"next action: {self.action.replace('_', ' ')}" if self.action else "",
            _ENDING_WORDS[self.ending] if self.ending else "",
        )
        return tuple(each for each in said if each)
