"""A judge asked once: with tries, waits and a bound for each, and what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Final

from evalsite.common.formatting import counted
from evalsite.judge_runner.addresses import AddressError, Lookup, checked_address, looked_up
from evalsite.judge_runner.endpoint import JudgeEndpoint
from evalsite.judge_runner.wire import PHASE_SECONDS, Reply, TooLateError, WireError, post
from reviews.core.judge_answers import Completion, completion_of, cost_of
from reviews.core.judge_prompt import JudgePrompt, request_document

LONGEST_WAIT: Final = 60.0  # seconds between two tries
_REFUSALS: Final = {
    401: "it does not accept the key",
    403: "it refuses the key or the model",
    404: "there is nothing at its address, or no such model",
    405: "it takes no requests of this form",
}


class EndpointRefusedError(Exception):
    """No request to the endpoint can succeed as it is set up; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking. Either `completion`, or `failure` with a sentence."""

    completion: Completion | None
    failure: str
    n_tries: int
    seconds: Decimal
    cost_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class JudgeClient:
    """Asks an endpoint. `sleep`, `now` and `lookup` are the machine's own but in tests."""

    endpoint: JudgeEndpoint
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    lookup: Lookup = looked_up

    def ask(self, prompt: JudgePrompt) -> Asked:
        """Send a prompt until it is answered or the tries are used up.

        Only 429, server errors and the time-out are tried again. Raises `EndpointRefusedError`
        where no other request would fare better: an address that is not connected to, a redirect,
        a key that is not accepted.
        """
        endpoint = self.endpoint
        document = request_document(prompt, model=endpoint.model, most_tokens=endpoint.max_tokens)
        body = json.dumps(document).encode("ascii")
        began = time.monotonic()
        n_tries = 0
        while True:
            n_tries += 1
            wait: float | None = _backoff(n_tries)
            try:
                reply = self._once(body)
            except TooLateError:
                failure = f"No answer within {counted(endpoint.timeout_seconds, 'second')}."
            except WireError as error:
                failure, wait = str(error), None
            else:
                if reply.status == 200:
                    return self._answered(reply, n_tries, began)
                failure, wait = self._refused(reply, n_tries)
            if wait is None or n_tries >= endpoint.tries:
                return Asked(None, failure, n_tries, _since(began))
            self.sleep(wait)

    def _once(self, body: bytes) -> Reply:
        endpoint = self.endpoint
        deadline = time.monotonic() + endpoint.timeout_seconds
        try:
            ip = checked_address(
                endpoint.address.host,
                endpoint.address.port,
                allow_private=endpoint.allow_private,
                timeout_seconds=min(PHASE_SECONDS, endpoint.timeout_seconds),
                lookup=self.lookup,
            )
        except AddressError as error:
            raise EndpointRefusedError(f"The endpoint is not connected to. {error}") from None
        except TimeoutError:
            raise TooLateError from None
        return post(endpoint.address, ip, body, key=endpoint.key, deadline=deadline)

    def _answered(self, reply: Reply, n_tries: int, began: float) -> Asked:
        encoding = reply.header("content-encoding").strip().lower()
        if encoding not in ("", "identity"):
            failure = "The reply is compressed, which was not asked for; it is not read."
            return Asked(None, failure, n_tries, _since(began))
        completion = _without_key(completion_of(reply.body), self.endpoint.key)
        cost = cost_of(completion, self.endpoint.prices)
        return Asked(completion, "", n_tries, _since(began), cost)

    def _refused(self, reply: Reply, n_tries: int) -> tuple[str, float | None]:
        """Why a reply is no answer, and how long to wait before the next try; None: no other."""
        status = reply.status
        if 300 <= status < 400:
            raise EndpointRefusedError(
                f"The endpoint answers with a redirect ({status}), which is never followed."
            )
        if status in _REFUSALS:
            raise EndpointRefusedError(f"The endpoint answers {status}: {_REFUSALS[status]}.")
        failure = f"The endpoint answered {status}."
        if status != 429 and status < 500:
            return failure, None
        wait = retry_after(reply.header("retry-after"), now=self.now())
        if wait is None:
            return failure, _backoff(n_tries)
        if wait > LONGEST_WAIT:
            longest = f"{LONGEST_WAIT:,.0f} seconds"
            return f"{failure} It asks to wait longer than {longest} before the next try.", None
        return failure, wait


def retry_after(text: str, *, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header, a number or a date; None for anything else."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


def _backoff(n_tries: int) -> float:
    return min(2.0 ** min(n_tries - 1, 6), LONGEST_WAIT)


def _since(began: float) -> Decimal:
    return Decimal(f"{time.monotonic() - began:.3f}")


def _without_key(completion: Completion, key: str) -> Completion:
    """What came back, with the key taken out where an endpoint sends it back."""
    if not key:
        return completion
    answer = completion.answer
    clean = replace(
        answer,
        rationale=answer.rationale.replace(key, "[key]"),
        raw=answer.raw.replace(key, "[key]"),
        raw_word=answer.raw_word.replace(key, "[key]"),
        problem=answer.problem.replace(key, "[key]"),
    )
    return replace(completion, answer=clean, model=completion.model.replace(key, "[key]"))
