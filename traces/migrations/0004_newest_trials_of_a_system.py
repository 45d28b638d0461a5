"""The newest trials of a system are found without looking at another system's."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("traces", "0003_missing_declared_trials")]

    operations = [
        AddIndexConcurrently(
            model_name="trial",
            index=models.Index(fields=["system", "-id"], name="trial_newest"),
        ),
    ]
