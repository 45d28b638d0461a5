"""Addresses of a system's pages, built without resolving each one anew."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

Value = str | int | uuid.UUID | Iterable[str] | None


def address(path: str, values: Mapping[str, Value], *, place: str = "") -> str:
    """A path with a query of the values that are not empty, and a place on the page."""
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if value is None or value == "":
            continue
        if isinstance(value, str | int | uuid.UUID):
            pairs.append((name, str(value)))
        else:
            pairs.extend((name, item) for item in value)
    query = f"?{urlencode(pairs)}" if pairs else ""
    return f"{path}{query}{place}"


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of one system. `root` ends with a slash."""

    root: str

    @classmethod
    def of(cls, slug: str) -> Addresses:
        """The addresses of the system of that slug."""
        return cls(reverse("task-list", kwargs={"slug": slug}).removesuffix("tasks/"))

    @property
    def tasks(self) -> str:
        return f"{self.root}tasks/"

    def task(self, task: uuid.UUID) -> str:
        return f"{self.root}tasks/{task}/"

    def compare(self, task: uuid.UUID) -> str:
        return f"{self.root}tasks/{task}/compare/"

    def tree(self, task: uuid.UUID) -> str:
        return f"{self.root}tasks/{task}/tree/"

    def diagnostics(self, task: uuid.UUID) -> str:
        return f"{self.root}tasks/{task}/diagnostics/"

    def register(self, task: uuid.UUID) -> str:
        """The accepted paths of a task."""
        return f"{self.root}tasks/{task}/accepted/"

    def accept(self, task: uuid.UUID) -> str:
        """The form that accepts a path of a task."""
        return f"{self.root}tasks/{task}/accept/"

    def withdraw(self, task: uuid.UUID, path: uuid.UUID) -> str:
        return f"{self.root}tasks/{task}/accepted/{path}/withdraw/"

    @property
    def rules(self) -> str:
        return f"{self.root}rules/"

    @property
    def rule_form(self) -> str:
        """The form that makes, changes or drops a rule, or says the kind of a tool."""
        return f"{self.root}rules/edit/"

    def rules_preview(self, preview: uuid.UUID) -> str:
        return f"{self.root}rules/previews/{preview}/"

    def rules_version(self, number: int) -> str:
        return f"{self.root}rules/versions/{number}/"

    @property
    def flags(self) -> str:
        return f"{self.root}flags/"

    def flag(self, flag: uuid.UUID) -> str:
        return f"{self.root}flags/{flag}/"

    def flag_form(self, trial: uuid.UUID) -> str:
        """The form that flags a trial."""
        return f"{self.root}trials/{trial}/flag/"

    @property
    def trials(self) -> str:
        return f"{self.root}trials/"

    def trial(self, trial: uuid.UUID) -> str:
        return f"{self.root}trials/{trial}/"

    def step(self, trial: uuid.UUID, step: int) -> str:
        """A stable link to a step of a trial."""
        return f"{self.root}trials/{trial}/?step={step}#step-{step}"

    def step_content(self, trial: uuid.UUID, step: int) -> str:
        return f"{self.root}trials/{trial}/steps/{step}/content"

    def raw_trial(self, trial: uuid.UUID) -> str:
        return f"{self.root}trials/{trial}/raw"

    @property
    def runs(self) -> str:
        return f"{self.root}runs/"

    def run(self, run: uuid.UUID) -> str:
        return f"{self.root}runs/{run}/"

    @property
    def releases(self) -> str:
        return f"{self.root}releases/"

    def release(self, release: uuid.UUID) -> str:
        return f"{self.root}releases/{release}/"

    @property
    def uploads(self) -> str:
        return f"{self.root}uploads/"

    @property
    def new_upload(self) -> str:
        return f"{self.root}uploads/new/"

    def upload(self, upload: uuid.UUID) -> str:
        return f"{self.root}uploads/{upload}/"

    def raw_upload(self, upload: uuid.UUID) -> str:
        return f"{self.root}uploads/{upload}/raw"

    def raw_line(self, upload: uuid.UUID, line: int) -> str:
        return f"{self.root}uploads/{upload}/lines/{line}/raw"
