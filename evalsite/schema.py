"""Whether the database has exactly the tables that this version of the code knows."""

from django.db import connection
from django.db.migrations.loader import MigrationLoader

_OWN_APPS = frozenset({"evalsite", "traces", "reviews"})


def schema_problem() -> str | None:
    """One sentence that says why this code must not serve this database, or None.

    Raises:
        django.db.OperationalError: the database cannot be reached.
    """
    loader = MigrationLoader(connection)
    applied = set(loader.applied_migrations)
    missing = sorted(set(loader.disk_migrations) - applied - _replaced(loader))
    if missing:
        return (
            f"The database is behind this version of evalsite: {len(missing)} migrations are not "
            f"applied, the first is {missing[0][0]}.{missing[0][1]}. Run `manage.py migrate`."
        )
    unknown = sorted(key for key in applied - set(loader.disk_migrations) if key[0] in _OWN_APPS)
    if unknown:
        return (
            f"The database is ahead of this version of evalsite: it has {unknown[0][0]}."
            f"{unknown[0][1]}, which this version does not know. Install the newer version."
        )
    return None


def _replaced(loader: MigrationLoader) -> set[tuple[str, str]]:
    """Squashed migrations that need not run, as all that they replace has run."""
    applied = set(loader.applied_migrations)
    return {
        key
        for key, migration in loader.disk_migrations.items()
        if migration.replaces and set(migration.replaces) <= applied
    }
