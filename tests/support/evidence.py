"""Native records in few words, and their way through the pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.utils import timezone

from evalsite.pipeline import process_upload
from traces.models import Door, Release, System, Upload, UploadJob, User
from traces.services.uploads import UploadRequest, receive_upload, staged
from traces.services.work import release_named

Call = tuple[str, dict[str, Any]]


def verdict(
    word: str = "pass",
    *,
    criterion: str = "outcome",
    grader: str = "state check",
    kind: str = "code",
    **more: Any,
) -> dict[str, Any]:
    """One verdict of a record."""
    return {"grader": grader, "kind": kind, "criterion": criterion, "verdict": word, **more}


def record(
    task_id: str = "t1",
    trial: int | str = 0,
    *,
    calls: Sequence[Call] = (("get_order", {"order": "A-1"}),),
    verdicts: Sequence[dict[str, Any]] | None = None,
    result: str = "ok",
    **more: Any,
) -> dict[str, Any]:
    """A native trial: the user asks, the agent makes its calls one by one and says it is done."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Please help."}]
    for number, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    messages.append({"role": "assistant", "content": "Done."})
    return {
        "task_id": task_id,
        "trial": trial,
        "messages": messages,
        "verdicts": [verdict()] if verdicts is None else list(verdicts),
        **more,
    }


def jsonl(records: Iterable[dict[str, Any]]) -> bytes:
    """Records as JSON Lines."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


def receive(
    system: System,
    body: bytes,
    *,
    release: Release | str | None = "1.0",
    run: str = "",
    by: User | None = None,
    file_name: str = "trials.jsonl",
) -> Upload:
    """An upload that is acknowledged and not yet read."""
    if isinstance(release, str):
        release = release_named(system, release, by=by)
    request = UploadRequest(
        system=system,
        release=release,
        run_name=run,
        file_name=file_name,
        format_asked="auto",
        door=Door.COMMAND,
        by=by,
    )
    with staged([body], max_bytes=None) as file:
        return receive_upload(file, request, now=timezone.now())


def ingest(system: System, body: bytes | Iterable[dict[str, Any]], **more: Any) -> UploadJob:
    """An upload read to its end. Returns its job with the counts of the ledger."""
    data = body if isinstance(body, bytes) else jsonl(body)
    upload = receive(system, data, **more)
    process_upload(upload.pk)
    return UploadJob.objects.select_related("upload").get(upload=upload)


def ledger(job: UploadJob) -> tuple[int, int, int, int, int]:
    """Received, stored, duplicate, conflict, refused."""
    return (job.n_received, job.n_stored, job.n_duplicate, job.n_conflict, job.n_refused)
