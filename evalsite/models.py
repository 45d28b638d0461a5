"""Rows about the running site itself, and the log of what people and programs did in it."""

import uuid

from django.db import models

from evalsite.common.triggers import append_only


class WorkerSign(models.Model):
    """When a worker last took a message; one row, number 1."""

    seen_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.CheckConstraint(condition=models.Q(id=1), name="evalsite_workersign_one_row"),
        )

    def __str__(self) -> str:
        return f"worker seen at {self.seen_at:%Y-%m-%d %H:%M:%S}"


class AuditEvent(models.Model):
    """One act: who did what to which object, in which role, when, why and by which way.

    The events of a system form a chain (`system` null: those of the site itself): `seq` counts from
    1, `hash` covers the event and the hash before it, `tag` is an HMAC of `hash` by a key that is
    not in the database. `evalsite.common.audit` writes them, `evalsite.audit.chain` checks them.
    """

    id = models.BigAutoField(primary_key=True)
    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(
        "traces.System", on_delete=models.PROTECT, null=True, related_name="+"
    )
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    actor = models.ForeignKey("traces.User", on_delete=models.PROTECT, null=True, related_name="+")
    actor_name = models.CharField(max_length=320, blank=True)  # as printed then; "": the operator
    role = models.CharField(max_length=16, blank=True)
    act = models.CharField(max_length=64)  # "sign_off.made", "contract.approved", …
    object_kind = models.CharField(max_length=32)
    object_id = models.CharField(max_length=64)  # its UUID, number or key
    object_label = models.CharField(max_length=600, blank=True)
    before = models.TextField(blank=True)  # canonical JSON; "" where there is nothing
    after = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    source = models.CharField(max_length=64)  # page | command | api | worker | sample
    key_name = models.CharField(max_length=220, blank=True)  # of the API key that was used
    request_id = models.CharField(max_length=64, blank=True)
    rows = models.TextField(blank=True)  # canonical JSON: digests of the rows that the act wrote
    previous = models.CharField(max_length=64)  # hash of the event before it, hex
    hash = models.CharField(max_length=64)
    key_id = models.CharField(max_length=32)
    tag = models.CharField(max_length=64)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["system", "seq"], name="audit_event_seq", nulls_distinct=False
            ),
        )
        indexes = (
            models.Index(fields=["system", "object_kind", "object_id"], name="audit_event_object"),
            models.Index(fields=["system", "actor", "-id"], name="audit_event_actor"),
        )
        triggers = append_only("an audit event")

    def __str__(self) -> str:
        return f"{self.act} {self.object_kind} {self.object_id}"


class AuditHead(models.Model):
    """The last event of a chain, and the lock that whoever adds one takes. Tagged like an event."""

    system = models.OneToOneField(
        "traces.System", on_delete=models.PROTECT, null=True, unique=True, related_name="+"
    )
    seq = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64, blank=True)
    key_id = models.CharField(max_length=32, blank=True)
    tag = models.CharField(max_length=64, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["system"], name="audit_head_once", nulls_distinct=False
            ),
        )

    def __str__(self) -> str:
        return f"head of {self.system_id or 'the site'}: {self.seq}"
