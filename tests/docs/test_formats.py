"""The written tables say what the code does."""

import json
import re
from pathlib import Path
from uuid import UUID

from reviews.api.novelty import novelty_document
from reviews.selectors.novelty import NovelPaths, TaskNovelty
from traces.core.formats import item_of_slice
from traces.core.formats.options import ReadOptions
from traces.core.formats.scanning import Slice
from traces.core.paths import PathLevel
from traces.core.records import ParsedTrial
from traces.core.verdict_words import VERDICT_WORDS
from traces.models import Release

TEXT = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()


def test_verdict_words_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (pass|fail|unknown|error) \| (.+) \|$", TEXT, re.MULTILINE)
    written = {word: verdict for verdict, words in rows for word in words.split(", ")}
    assert written == {word: verdict.value for word, verdict in VERDICT_WORDS.items()}


def test_the_example_of_novelty_has_the_members_of_the_document() -> None:
    (example,) = re.findall(r"```\n({\"release\".+?)```", TEXT, re.DOTALL)
    written = json.loads(example)
    task = TaskNovelty(1, UUID(int=0), "12", 0, 0, 0)
    release = Release(name="2.0")
    made = novelty_document(release, PathLevel.SEQUENCE, [(task, NovelPaths())], messages=False)

    assert list(written) == list(made)
    assert list(written["tasks"][0]) == list(made["tasks"][0])


def test_the_example_record_is_read_without_a_finding() -> None:
    (example,) = re.findall(r"```json\n(.+?)```", TEXT, re.DOTALL)
    line = json.dumps(json.loads(example)).encode()

    item = item_of_slice(Slice(data=line, number=1, offset=0, length=len(line)), "", ReadOptions())

    assert isinstance(item.content, ParsedTrial)
    assert (item.refusals, item.warnings) == ((), ())
