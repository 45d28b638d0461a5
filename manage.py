#!/usr/bin/env python3
"""Django's command line for evalsite; sets up its own environment where there is none."""

import os
import sys


def main() -> int:
    # This file is read by older Pythons too: no newer syntax before this line.
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit("evalsite needs Python 3.11 or newer; this one is " + sys.version.split()[0] + ".")
    from evalsite import bootstrap

    bootstrap.run_inside_environment(sys.argv)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
    if sys.argv[1:2] == ["test"]:
        return bootstrap.run_tests(sys.argv[2:])
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from evalsite.embedded.postgres import EmbeddedPostgresError

    try:
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, EmbeddedPostgresError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
