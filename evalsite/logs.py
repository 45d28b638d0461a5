"""One line for each event: time, level, logger, event, then `key=value` pairs from `extra`.

Values are written as JSON, so that a line break in an identifier cannot forge a line.
"""

import json
import logging
import re
import time
from typing import Final

from evalsite.common.acting import acting_now

_KNOWN: Final = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",
}
# Django and the web server hand these objects along; they hold what must not be logged.
_WITHHELD: Final = frozenset({"request", "server_time", "data", "exc_info", "stack_info"})
# The address of an invitation is its secret.
_SECRET_ADDRESS: Final = re.compile(r"(/invitations/[0-9A-Fa-f-]{36}/)[^/\s\"'\\?&]+")


class LineFormatter(logging.Formatter):
    """Formats a record as one line; an exception becomes one escaped value of that line."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        at = f"{seconds}.{int(record.msecs):03d}Z"
        parts = [
            at,
            record.levelname,
            record.name,
            f"event={_escaped(record.getMessage())}",
        ]
        parts += [
            f"{key}={_escaped(value)}"
            for key, value in record.__dict__.items()
            if key not in _KNOWN and key not in _WITHHELD
        ]
        if request_id := acting_now().request_id:
            parts.append(f"request={_escaped(request_id)}")
        if record.exc_info:
            parts.append(f"exception={_escaped(self.formatException(record.exc_info))}")
        return _SECRET_ADDRESS.sub(r"\1[withheld]", " ".join(parts))


def _escaped(value: object) -> str:
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    text = str(value)
    plain = text.isascii() and text.replace("-", "").replace("_", "").replace(".", "").isalnum()
    return text if plain else json.dumps(text)
