"""The table of input formats, and the one way to read an upload of any of them.

A new format is a module with a reader, its shapes in `sniffing` and a line in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final

from traces.core.formats.containers import (
    Contents,
    DamagedError,
    Member,
    TooLargeError,
    inflated_size,
    opened_upload,
)
from traces.core.formats.native import (
    item_of_slice,
    native_record,
    read_native,
    read_native_document,
)
from traces.core.formats.options import AUTO, DEFAULT_OPTIONS, ReadOptions
from traces.core.formats.scanning import stretch
from traces.core.formats.sniffing import Shape, shape_of
from traces.core.formats.tau2 import (
    NO_CONTEXT,
    Context,
    ResultsReader,
    read_tau2,
    read_tau2_simulation,
    read_tau2_tasks,
)
from traces.core.formats.tau2_judges import read_judge_summary, read_raw_judgements
from traces.core.formats.tau_bench import read_tau_bench
from traces.core.records import Finding, Item, Source, UnreadableUploadError

__all__ = [
    "AUTO",
    "FORMATS",
    "ReadOptions",
    "TooLargeError",
    "format_of",
    "inflated_size",
    "item_of_slice",
    "native_record",
    "read_upload",
    "record_bytes",
]

Reader = Callable[[Member, ReadOptions], Iterator[Item]]

READERS: Final[Mapping[Shape, tuple[str, Reader]]] = MappingProxyType(
    {
        Shape.NATIVE_LINES: ("native", read_native),
        Shape.NATIVE_DOCUMENT: ("native", read_native_document),
        Shape.TAU_BENCH: ("tau-bench", read_tau_bench),
        Shape.TAU2_RESULTS: ("tau2", read_tau2),
        Shape.TAU2_SIMULATION: ("tau2", read_tau2_simulation),
        Shape.TAU2_TASKS: ("tau2", read_tau2_tasks),
        Shape.JUDGE_SUMMARY: ("tau2-judges", read_judge_summary),
        Shape.JUDGE_LINES: ("tau2-judges", read_raw_judgements),
    }
)
"""Each shape of a file, the name of its format, and its reader."""

FORMATS: Final = tuple(dict.fromkeys(name for name, _ in READERS.values()))
"""The names that `ReadOptions.format` takes beside `auto`."""


def read_upload(path: Path, options: ReadOptions = DEFAULT_OPTIONS) -> Iterator[Item]:
    """Every record of an upload file, refused ones too, in a fixed order.

    Facts and task definitions come before the trials of their file. Memory is bounded by the
    largest record. Raises UnreadableUploadError when nothing can be read, and TooLargeError, which is one,
    as soon as a limit on the whole upload is passed.
    """
    with opened_upload(path, options.limits) as contents:
        if contents.is_archive:
            yield from _archive_items(contents, options)
        else:
            yield from _file_items(contents.members[0], options)


def record_bytes(path: Path, source: Source, options: ReadOptions = DEFAULT_OPTIONS) -> bytes:
    """The bytes of one record as they stand in the upload. Raises UnreadableUploadError.

    The file is unpacked up to the record; memory is bounded by its length.
    """
    with opened_upload(path, options.limits) as contents:
        for member in contents.members:
            if member.name == source.member:
                try:
                    with member.open() as stream:
                        return stretch(stream, source.offset, source.length)
                except DamagedError as error:
                    finding = Finding("damaged", "", f"The upload is damaged ({error}).")
                    raise UnreadableUploadError(finding) from error
    raise UnreadableUploadError(Finding("no-member", "", "The upload has no such member."))


def format_of(path: Path, options: ReadOptions = DEFAULT_OPTIONS) -> str:
    """The name of an upload's format; of an archive, that of its first readable member.

    Raises UnreadableUploadError.
    """
    with opened_upload(path, options.limits) as contents:
        if not contents.is_archive:
            return READERS[_shape(contents.members[0], options)][0]
        for member in contents.members:
            try:
                return READERS[_shape(member, options)][0]
            except UnreadableUploadError as error:
                if isinstance(error, TooLargeError):
                    raise
        raise _nothing_readable()


def _file_items(member: Member, options: ReadOptions) -> Iterator[Item]:
    shape = _shape(member, options)
    yield from _undamaged(READERS[shape][1](member, options), member)


def _shape(member: Member, options: ReadOptions) -> Shape:
    shape = shape_of(member)
    name = READERS[shape][0]
    if options.format not in (AUTO, name):
        sentence = f"The file is in the format {name}, not {options.format}."
        raise UnreadableUploadError(Finding("other-format", "", sentence))
    return shape


def _undamaged(items: Iterator[Item], member: Member) -> Iterator[Item]:
    """The items up to where the compressed file is damaged, and there a refusal."""
    number = 0
    try:
        for item in items:
            number = max(number, item.source.number)
            yield item
    except DamagedError as error:
        sentence = f"The compressed file is damaged or cut short from here on ({error})."
        finding = Finding("damaged", "", sentence)
        yield Item(Source(number + 1, member.name), None, (finding,))


def _archive_items(contents: Contents, options: ReadOptions) -> Iterator[Item]:
    warnings = {name: (finding,) for name, finding in contents.warnings}
    for number, item in enumerate(_members_items(contents, options), 1):
        member = item.source.member
        yield replace(
            item,
            source=replace(item.source, number=number),
            warnings=item.warnings + warnings.pop(member, ()),
        )


def _members_items(contents: Contents, options: ReadOptions) -> Iterator[Item]:
    for name, finding in contents.refusals:
        yield Item(Source(0, name), None, (finding,))
    shapes: list[tuple[Member, Shape]] = []
    refused: list[Item] = []
    for member in contents.members:
        try:
            shapes.append((member, _shape(member, options)))
        except UnreadableUploadError as error:
            if isinstance(error, TooLargeError):
                raise
            refused.append(Item(Source(0, member.name), None, (error.finding,)))
    if not shapes and not contents.refusals:
        raise _nothing_readable()
    yield from refused
    contexts: dict[str, Context] = {}
    for member, shape in shapes:
        if shape is Shape.TAU2_RESULTS:
            reader = ResultsReader(member, options)
            yield from _undamaged(reader.head(), member)
            contexts[_folder(member.name)] = reader.context()
            yield from _undamaged(reader.trials(), member)
    for member, shape in shapes:
        if shape is Shape.TAU2_SIMULATION:
            context = _context_for(member, contexts)
            yield from _undamaged(read_tau2_simulation(member, options, context), member)
        elif shape is not Shape.TAU2_RESULTS:
            yield from _undamaged(READERS[shape][1](member, options), member)


def _folder(name: str) -> str:
    return str(PurePosixPath(name).parent)


def _context_for(member: Member, contexts: Mapping[str, Context]) -> Context:
    """The results file of a simulation: of its folder or the nearest above, else the only one."""
    for folder in map(str, PurePosixPath(member.name).parents):
        if folder in contexts:
            return contexts[folder]
    return next(iter(contexts.values())) if len(contexts) == 1 else NO_CONTEXT


def _nothing_readable() -> UnreadableUploadError:
    sentence = "The archive holds nothing in a known format."
    return UnreadableUploadError(Finding("unknown-format", "", sentence))
