"""Which judges' verdicts count: the calibrations that hold, applied to the verdicts of a trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from reviews.core.disposition import GivenVerdict, Requirement
from traces.core.records import GraderKind

CalibrationKey = tuple[str, str, str, bytes | None]
"""Judge, its version, the criterion, and the criterion's digest (None without a contract)."""


@dataclass(frozen=True, slots=True)
class Calibrations:
    """The judge versions that are calibrated, each until an instant.

    A date that passes changes no earlier decision: what was given until then goes on counting.
    """

    until: Mapping[CalibrationKey, datetime] = field(default_factory=dict)

    def holds_for(self, verdict: GivenVerdict, criterion_digest: bytes | None) -> bool:
        """Whether a judge's verdict counts for the criterion of that digest."""
        key = (verdict.grader, verdict.grader_version, verdict.criterion, criterion_digest)
        until = self.until.get(key)
        return until is not None and (verdict.given_at is None or verdict.given_at <= until)

    def applied(
        self, verdicts: Sequence[GivenVerdict], requirements: Iterable[Requirement]
    ) -> Sequence[GivenVerdict]:
        """The verdicts, those of judges that are calibrated for what is required marked as such.

        A verdict on a criterion that nothing requires counts nowhere, and is left as it is.
        """
        if not self.until:
            return verdicts
        digests = {r.criterion: r.criterion_digest for r in requirements}
        return [
            replace(v, is_calibrated=True)
            if v.kind is GraderKind.MODEL
            and v.criterion in digests
            and self.holds_for(v, digests[v.criterion])
            else v
            for v in verdicts
        ]


NO_CALIBRATIONS = Calibrations()
"""What holds where no judge is calibrated."""
