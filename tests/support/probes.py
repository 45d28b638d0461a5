"""Batches of probes, and verdicts of judges on them, as uploads bring them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from reviews.core.probes import ProbeKind
from reviews.models import Probe, ProbeBatch
from reviews.services.probes import BatchWish, make_batch
from tests.support.cast import Cast
from tests.support.evidence import verdict

MODEL = "judge one"


def batch_of(
    cast: Cast, kinds: Iterable[ProbeKind] = tuple(ProbeKind), *, n: int = 1, **more: Any
) -> ProbeBatch:
    """Probes on the criterion `outcome`, which no contract asks for, made by the engineer."""
    wish = BatchWish(
        criterion=more.pop("criterion", "outcome"),
        criterion_digest=more.pop("digest", None),
        kinds=frozenset(kinds),
        reason="To try the judges.",
        n=n,
        may_fall=more.pop("may_fall", False),
        trials=more.pop("trials", ()),
    )
    return make_batch(cast.system, wish, by=cast.engineer, now=timezone.now(), seed=7, **more)


def judged(
    probe: Probe, word: str = "pass", *, judge: str = MODEL, version: str = "1", **more: Any
) -> dict[str, Any]:
    """A verdict record on a probe, named as the bundle names it."""
    said = verdict(
        word,
        criterion=more.pop("criterion", "outcome"),
        grader=judge,
        kind=more.pop("kind", "model"),
        grader_version=version,
        **more,
    )
    return {"record": "verdicts", "external_id": str(probe.uuid), "verdicts": [said]}


def probe_of(batch: ProbeBatch, kind: ProbeKind) -> Probe:
    """The first probe of a kind."""
    return Probe.objects.filter(batch=batch, kind=kind.value).order_by("trial_id")[0]
