"""Which trials of a task the address asks for: of some releases, and of one version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalsite.access import SystemRequest
from evalsite.common.shell import Choice, Option
from traces.selectors.releases import ReleaseName, release_names
from traces.selectors.task_detail import ChosenTrials, TaskDetail, VersionRow
from traces.web.addresses import Value, address
from traces.web.asking import number_in, uuid_of


@dataclass(frozen=True, slots=True)
class TaskFilters:
    """The chosen releases (none: all) and version (None: all), of those that there are."""

    task: TaskDetail
    every_release: tuple[ReleaseName, ...]
    releases: tuple[ReleaseName, ...]
    version: VersionRow | None

    @classmethod
    def of(cls, request: SystemRequest, task: TaskDetail) -> TaskFilters:
        """What the address asks for; releases and versions that do not exist ask for nothing."""
        wanted = {uuid_of(value) for value in request.GET.getlist("release")}
        version = number_in(request, "version")
        every = release_names(request.access.system.pk)
        return cls(
            task=task,
            every_release=every,
            releases=tuple(each for each in every if each.uuid in wanted),
            version=task.version(version) if version is not None else None,
        )

    @property
    def values(self) -> dict[str, Value]:
        """What an address says of them."""
        return {
            "release": [str(release.uuid) for release in self.releases],
            "version": self.version.number if self.version else None,
        }

    def trials(self, rules_pk: int | None) -> ChosenTrials:
        """The trials that are meant."""
        return ChosenTrials(
            self.task.pk,
            rules_pk,
            tuple(release.pk for release in self.releases),
            self.version.pk if self.version else None,
        )

    @property
    def release_options(self) -> tuple[Option, ...]:
        """All releases, for a form."""
        return tuple(
            Option(str(each.uuid), each.label, is_selected=each in self.releases)
            for each in self.every_release
        )

    @property
    def releases_label(self) -> str:
        """The chosen releases in few words."""
        if not self.releases:
            return "All releases"
        if len(self.releases) == 1:
            return self.releases[0].label
        return f"{len(self.releases)} of {len(self.every_release)} releases"

    def version_choices(self, here: str, values: dict[str, Value]) -> tuple[Choice, ...]:
        """All versions, and each one; nothing to choose where there is one."""
        if len(self.task.versions) < 2:
            return ()
        return (
            Choice(
                "All versions",
                address(here, {**values, "version": None}),
                is_current=self.version is None,
                count=sum(version.n_trials for version in self.task.versions),
                help="Browsing takes all versions of the task together.",
            ),
            *(
                Choice(
                    f"Version {version.number}",
                    address(here, {**values, "version": version.number}),
                    is_current=version == self.version,
                    count=version.n_trials,
                )
                for version in reversed(self.task.versions)
            ),
        )

    @property
    def pools_versions(self) -> bool:
        """Whether trials of several versions are taken together."""
        return self.version is None and _n_tried(self.task.versions) > 1


def _n_tried(versions: Sequence[VersionRow]) -> int:
    return sum(version.n_trials > 0 for version in versions)
