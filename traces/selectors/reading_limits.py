"""The sizes that an upload may have, by the door that it came in."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings

from traces.core.limits import Limits
from traces.models import Door

_NO_BOUND = 2**62


def reading_limits(door: Door) -> Limits:
    """The limits under which an upload is read.

    An operator's own file may be of any size: it is read as a stream, so that memory is bounded
    by its largest record all the same.
    """
    limits: Limits = settings.EVALSITE_LIMITS
    if door is Door.COMMAND:
        return replace(limits, inflated_bytes=_NO_BOUND, archive_bytes=_NO_BOUND)
    return limits
