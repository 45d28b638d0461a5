"""Who may flag a trial and who may close a flag."""

from __future__ import annotations

from django.db.models import Exists, Q

from traces.models import Member, Release, Role, Run, Trial, Upload, User

BROUGHT_EVIDENCE = (
    "You uploaded evidence of this trial's release or declared a run of it; a reviewer who did "
    "neither closes its flags. Whoever raised one may withdraw it."
)


def role_in(system_id: int, user: User) -> Role | None:
    """The role that a person has in a system now; None without one."""
    role = (
        Member.objects.filter(system=system_id, user=user, user__is_active=True)
        .values_list("role", flat=True)
        .first()
    )
    return None if role is None else Role(role)


def flagging_refusal(role: Role | None) -> str:
    """Why somebody of that role may not flag a trial of the system; "" when they may."""
    return "" if role else "Only a member of this system flags its trials."


def brought_evidence(release_id: int, user: User) -> bool:
    """Whether a person, or a key of theirs, uploaded evidence of a release, or declared a run of it.

    Whatever their role was then. An upload whose records name their releases belongs to those of
    its trials. One query.
    """
    theirs = Q(by=user) | Q(api_key__user=user)
    named = Upload.objects.filter(theirs, release=release_id)
    unnamed = Upload.objects.filter(theirs, release=None, system__releases=release_id)
    trials = Trial.objects.filter(release=release_id, upload__in=unnamed)
    runs = Run.objects.filter(release=release_id, declared_by=user)
    brought = Exists(runs) | Exists(named) | Exists(trials)
    return Release.objects.filter(brought, pk=release_id).exists()


def closing_refusal(role: Role | None, *, is_own: bool, has_brought: bool) -> str:
    """Why somebody of that role may not close a flag; "" when they may.

    `is_own`: they raised it themselves, and closing withdraws it. `has_brought`: they brought
    evidence of the trial's release, as `brought_evidence` says.
    """
    if role is None:
        return "Only a member of this system closes its flags."
    if is_own:
        return ""
    if role is Role.REVIEWER:
        return BROUGHT_EVIDENCE if has_brought else ""
    return (
        "A flag asks for a second look by somebody who did not build the release: a reviewer "
        "of this system closes it. Whoever raised it may withdraw it."
    )
