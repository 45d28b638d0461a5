"""Each member of before gets the change of role that made them one."""

from django.db import migrations

_NOTE = """
INSERT INTO traces_memberchange (system_id, user_id, old, new, reason, by_id, changed_at)
SELECT m.system_id, m.user_id, '', m.role, 'A member since before changes were kept.', NULL, m.since
FROM traces_member m
WHERE NOT EXISTS (
    SELECT 1 FROM traces_memberchange c
    WHERE c.system_id = m.system_id AND c.user_id = m.user_id
)
ORDER BY m.id
"""


class Migration(migrations.Migration):
    dependencies = [("traces", "0007_member_changes_invitations_and_devices")]

    # Backwards they stay: the table that holds them goes with the migration before.
    operations = [migrations.RunSQL(_NOTE, migrations.RunSQL.noop)]
