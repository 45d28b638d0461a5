"""Which records of an environment a trial touched, collection by collection."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traces.core.canonical import equal, natural_key
from traces.core.differences import kept_ends
from traces.core.values import Json

LISTED_RECORDS = 6
"""Names of records listed of each kind; all of them are counted."""


@dataclass(frozen=True, slots=True)
class TouchedRecords:
    """Records of one collection with the same fate, in natural order."""

    names: tuple[str, ...]  # keys of an object, indexes of a list; the first ones
    n: int


@dataclass(frozen=True, slots=True)
class TouchedCollection:
    """A top-level member of the state in which something differs.

    A member that holds no records is one record by itself, without a name.
    """

    name: str
    created: TouchedRecords
    changed: TouchedRecords
    removed: TouchedRecords


def touched_collections(
    before: Json, after: Json, *, limit: int = LISTED_RECORDS
) -> tuple[TouchedCollection, ...]:
    """The collections that two states differ in, in natural order of name.

    States that are no objects have no collections. An index in a list counts in the state after,
    save for what was removed.
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return ()
    found: list[TouchedCollection] = []
    for name in sorted(before.keys() | after.keys(), key=natural_key):
        fates = _fates(before.get(name), after.get(name), name in before, name in after)
        created, changed, removed = (_records(fate, limit) for fate in fates)
        if created.n or changed.n or removed.n:
            found.append(TouchedCollection(name, created, changed, removed))
    return tuple(found)


def _records(names: list[str], limit: int) -> TouchedRecords:
    return TouchedRecords(tuple(names[:limit]), len(names))


def _fates(
    old: Json,
    new: Json,
    was_there: bool,  # noqa: FBT001 - beside its value
    is_there: bool,  # noqa: FBT001 - beside its value
) -> tuple[list[str], list[str], list[str]]:
    """The names of created, changed and removed records."""
    if not was_there:
        return list(_names(new)), [], []
    if not is_there:
        return [], [], list(_names(old))
    if isinstance(old, dict) and isinstance(new, dict):
        return _fates_by_name(old, new)
    if isinstance(old, list) and isinstance(new, list):
        return _fates_by_place(old, new)
    return [], [] if equal(old, new) else [""], []


def _names(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        yield from sorted(value, key=natural_key)
    elif isinstance(value, list):
        yield from (str(index) for index in range(len(value)))
    else:
        yield ""


def _fates_by_name(
    old: dict[str, Json], new: dict[str, Json]
) -> tuple[list[str], list[str], list[str]]:
    names = sorted(old.keys() | new.keys(), key=natural_key)
    return (
        [name for name in names if name not in old],
        [name for name in names if name in old and name in new and not equal(old[name], new[name])],
        [name for name in names if name not in new],
    )


def _fates_by_place(old: list[Json], new: list[Json]) -> tuple[list[str], list[str], list[str]]:
    start, end = kept_ends(old, new)
    n_old, n_new = len(old) - end, len(new) - end
    n_pairs = max(min(n_old, n_new), start)
    return (
        [str(index) for index in range(n_pairs, n_new)],
        [str(i) for i in range(start, n_pairs) if not equal(old[i], new[i])],
        [str(index) for index in range(n_pairs, n_old)],
    )
