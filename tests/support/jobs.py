"""A Celery application for tests: the site's own, on a queue of its own, with odd jobs."""

import os
import time
from pathlib import Path

from evalsite.celery import app

app.conf.task_default_queue = os.environ["EVALSITE_TEST_QUEUE"]


@app.task(name="tests.first_time_forever", ignore_result=True)
def first_time_forever(notes: str) -> None:
    """Never ends the first time; ends at once the second time."""
    path = Path(notes)
    is_first = not path.exists()
    with path.open("a") as file:
        file.write("begun\n")
    if is_first:
        time.sleep(600)
    with path.open("a") as file:
        file.write("done\n")
