"""Gates of releases that have to be computed anew."""

from __future__ import annotations

from evalsite.common.gate_marks import touch_gates

__all__ = ["touch_gates"]
