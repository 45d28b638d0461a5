"""Uploads: the list, the form, and the receipt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Crumb, Pager, Shell
from traces.web.pages.parts import Empty, Fact, Link


@dataclass(frozen=True, slots=True)
class UploadRow:
    """An upload in the list. `state`: received, processing, done, failed."""

    name: str
    href: str
    state: str
    door: str  # page | api | command | sample
    by: str
    received_at: datetime
    size: int
    n_received: int
    n_stored: int
    n_duplicate: int
    n_conflict: int
    n_refused: int

    @property
    def shape(self) -> str:
        """Which shape and colour its state gets."""
        return shape_of(self.state, self.n_conflict + self.n_refused)

    @property
    def words(self) -> str:
        """Its state as a page says it."""
        return words_of(self.state, self.n_conflict + self.n_refused)


def shape_of(state: str, n_problems: int) -> str:
    """The shape of an upload's state: a finished one with refused records is open."""
    if state == "done":
        return "unresolved" if n_problems else "pass"
    return {"received": "waiting", "processing": "working"}.get(state, "fail")


def words_of(state: str, n_problems: int) -> str:
    """The state of an upload in words."""
    if state == "done":
        return "done, not all taken" if n_problems else "done"
    return {"received": "waiting", "processing": "reading", "failed": "unreadable"}.get(
        state, state
    )


@dataclass(frozen=True, slots=True)
class UploadListPage:
    """The uploads of a system, newest first."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    rows: tuple[UploadRow, ...]
    pager: Pager
    new_url: str  # "" where the person may not upload
    why_not: str = ""  # why not
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class UploadFormPage:
    """The upload page. The form has `files`, `release`, `run` and `format`."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    form: forms.Form
    action: str
    limits: str  # "Up to 2 GB a file. JSON Lines, JSON, zip and tar.gz; gzip and zstd inside."
    formats: tuple[Fact, ...]  # what is understood
    api_help: str = ""  # a command line that does the same


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One record that a person should know of."""

    number: int
    member: str  # of the archive, "" for a single file
    outcome: str  # refused | conflict | partly | note
    place: str
    sentence: str
    raw_url: str = ""  # the record as it came
    href: str = ""  # the stored trial that it collides with, or that it landed in


@dataclass(frozen=True, slots=True)
class ReceiptPage:
    """One upload: how far it is, and what became of every record."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    name: str
    state: str  # received | processing | done | failed
    sentence: str  # "Stored for good. Reading record 1,200."
    failure: str
    facts: tuple[Fact, ...]  # size, checksum, door, by, format, release, run
    percent: int | None  # of the bytes read; None while unknown
    n_received: int
    n_stored: int
    n_duplicate: int
    n_conflict: int
    n_refused: int
    n_trials: int
    n_verdicts: int
    n_verdicts_refused: int
    n_waiting: int  # verdicts whose trial has not come yet
    landed: tuple[Link, ...]  # tasks, run and release that it went into
    lines: tuple[LedgerLine, ...]
    lines_words: str
    lines_pager: Pager
    raw_url: str
    poll_url: str = ""  # set while it moves; the page asks again by itself
    again_url: str = ""

    @property
    def shape(self) -> str:
        """Which shape and colour its state gets."""
        return shape_of(self.state, self.n_conflict + self.n_refused)

    @property
    def words(self) -> str:
        """Its state as a page says it."""
        return words_of(self.state, self.n_conflict + self.n_refused)
