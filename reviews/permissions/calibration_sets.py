"""Who may make, close, import and vouch for calibration sets. Each answer is "" or why not."""

from __future__ import annotations

from traces.models import Role

NOT_A_REVIEWER = "Only a reviewer of this system makes and closes calibration sets."
NOT_AN_IMPORTER = "Only an engineer or a reviewer of this system brings labels in."
NOT_A_VOUCHER = "Only a reviewer of this system vouches for imported labels."
IMPORTED_IT = "You brought these labels in; another reviewer vouches for them."
LABELLED_IT = "Labels of this set are yours; another reviewer vouches for them."


def set_refusal(role: Role | None) -> str:
    """Why somebody of that role may not make, close or thin out a set; "" when they may."""
    return "" if role is Role.REVIEWER else NOT_A_REVIEWER


def import_refusal(role: Role | None) -> str:
    """Why somebody of that role may not bring labels in; "" when they may."""
    return "" if role in (Role.ENGINEER, Role.REVIEWER) else NOT_AN_IMPORTER


def vouch_refusal(role: Role | None, *, is_importer: bool, is_labeller: bool) -> str:
    """Why somebody of that role may not vouch for imported labels; "" when they may."""
    if role is not Role.REVIEWER:
        return NOT_A_VOUCHER
    if is_importer:
        return IMPORTED_IT
    return LABELLED_IT if is_labeller else ""
