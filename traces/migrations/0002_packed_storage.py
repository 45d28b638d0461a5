"""Compressed columns are stored as they are: compressing them again costs time and gains nothing."""

from django.db import migrations

PACKED = (
    ("traces_transcriptchunk", "content"),
    ("traces_trialrecord", "content"),
    ("traces_taskversion", "definition"),
)


class Migration(migrations.Migration):
    dependencies = [("traces", "0001_initial")]

    operations = [
        migrations.RunSQL(
            sql=f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTERNAL",
            reverse_sql=f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE EXTENDED",
        )
        for table, column in PACKED
    ]
