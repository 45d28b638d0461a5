"""Whether a document has the shape of the published schema, said in sentences for people."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema import ValidationError as Fault
from jsonschema.validators import extend

from traces.core.contracts.documents import Document
from traces.core.contracts.places import Findings, Path, field_of, quoted
from traces.core.contracts.schema import CONTRACT_SCHEMA, ONE_LINE
from traces.core.formats.checks import object_or_empty, text_or_empty
from traces.core.shown_json import shown_json
from traces.core.values import Json, JsonObject

_REQUIREMENTS: Final = (
    "Requirements stand under `outcome`, `required`, `prohibited`, `budget`, `semantic` and "
    "`external`."
)
_HINTS: Final = {
    "contract": "A contract begins with `task`, the id of its task.",
    "id": "A contract begins with `task`, the id of its task.",
    "task_id": "A contract begins with `task`, the id of its task.",
    "version": "Versions are counted when a contract is stored.",
    "checks": _REQUIREMENTS,
    "criteria": _REQUIREMENTS,
    "rules": _REQUIREMENTS,
    "forbidden": _REQUIREMENTS,
}
_LONGEST_GUESSED_NAME: Final = 40
_MOST_GUESSED_NAMES: Final = 100
_MOST_UNKNOWN_FIELDS: Final = 20  # of one mapping
_MOST_VALUE_CHARS: Final = 60

_TYPES: Final = {
    "string": "a text",
    "array": "a list",
    "object": "a mapping of names to values",
    "boolean": "true or false",
    "number": "a number",
    "integer": "a whole number",
}


def _is_whole(_checker: object, value: object) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return isinstance(value, int) and not isinstance(value, bool)


def _holds(condition: JsonObject, value: Json) -> bool:
    """Whether a value meets a condition of the schema: a type, fields that must be there, or not.

    The library answers the same, and takes ten times as long.
    """
    for keyword, given in condition.items():
        match keyword:
            case "type":
                held = isinstance(value, _CONDITION_TYPES[str(given)])
            case "required":
                assert isinstance(given, list)
                held = not isinstance(value, dict) or all(name in value for name in given)
            case "not":
                assert isinstance(given, dict)
                held = not _holds(given, value)
            case _:
                assert keyword == "anyOf"
                assert isinstance(given, list)
                held = any(_holds(item, value) for item in given if isinstance(item, dict))
        if not held:
            return False
    return True


_CONDITION_TYPES: Final[dict[str, type]] = {"array": list, "object": dict, "string": str}


def _any_of(_: object, forms: list[JsonObject], value: Json, __: object) -> Iterator[Fault]:
    if not any(_holds(form, value) for form in forms):
        yield Fault("")


def _one_of(_: object, forms: list[JsonObject], value: Json, __: object) -> Iterator[Fault]:
    if isinstance(value, dict) and sum(_holds(form, value) for form in forms) != 1:
        yield Fault("")


def _not(_: object, form: JsonObject, value: Json, __: object) -> Iterator[Fault]:
    if isinstance(value, dict) and _holds(form, value):
        yield Fault("")


def _if(validator: Any, condition: JsonObject, value: Json, schema: JsonObject) -> Iterator[Fault]:
    branch = "then" if _holds(condition, value) else "else"
    if branch in schema:
        yield from validator.descend(value, schema[branch], schema_path=branch)


def _without_references(schema: Json) -> Json:
    """The schema with each reference replaced by what it leads to: none of them is recursive."""
    if isinstance(schema, list):
        return [_without_references(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = object_or_empty(CONTRACT_SCHEMA["$defs"])
    name = text_or_empty(schema.get("$ref")).removeprefix("#/$defs/")
    inner = object_or_empty(definitions.get(name))
    return {
        key: _without_references(value)
        for key, value in {**inner, **schema}.items()
        if key not in {"$ref", "$defs"}
    }


VALIDATOR = extend(
    Draft202012Validator,
    validators={"anyOf": _any_of, "oneOf": _one_of, "not": _not, "if": _if},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole),
)(_without_references(CONTRACT_SCHEMA))


def check_shape(document: Document) -> None:
    """Add a finding for each place where the document does not conform to the schema.

    Raises TooManyFindingsError where there are too many.
    """
    findings = document.findings
    if not isinstance(document.value, dict):
        if () not in document.untold:
            found = _found(document.value)
            sentence = f"A contract is a mapping that begins with `task: …`, not {found}."
            findings.add("not-a-mapping", (), sentence)
        return
    for error in VALIDATOR.iter_errors(document.value):
        path: Path = tuple(error.absolute_path)
        if path in document.untold and error.validator != "additionalProperties":
            continue  # what is there could not be told
        SAYERS[str(error.validator)](error, path, findings)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, as a question; "" when there is none.

    Long words are not guessed, and not among very many: comparing would take long.
    """
    if len(word) > _LONGEST_GUESSED_NAME:
        return ""
    few = [name for name in known if len(name) <= _LONGEST_GUESSED_NAME][:_MOST_GUESSED_NAMES]
    folded = {_folded(name): name for name in few}
    close = difflib.get_close_matches(_folded(word), folded, 1, 0.6)
    return f" Do you mean `{folded[close[0]]}`?" if close else ""


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_")


def _named(path: Path) -> str:
    return f"`{field_of(path)}`"


def _found(value: Json) -> str:
    """What stands there, in words."""
    match value:
        case None:
            return "nothing"
        case str():
            return f"the text {quoted(value)}"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            shown = shown_json(value)
            short = shown if len(shown) <= _MOST_VALUE_CHARS else f"{shown[:_MOST_VALUE_CHARS]}…"
            return short if isinstance(value, bool) else f"the number {short}"


def _wanted(schema: JsonObject) -> str:
    types = schema["type"]
    names = types if isinstance(types, list) else [types]
    words = " or ".join(_TYPES[str(name)] for name in names)
    if "minimum" in schema:
        words += f" of {schema['minimum']} or more"
    return words


def _schema_of(error: Fault) -> JsonObject:
    assert isinstance(error.schema, dict)
    return error.schema


def _say_type(error: Fault, path: Path, findings: Findings) -> None:
    wanted = _wanted(_schema_of(error))
    if error.instance is None:
        sentence = f"{_named(path)} is empty: give it {wanted}, or leave the line out."
    else:
        sentence = f"{_named(path)} must be {wanted}, not {_found(error.instance)}."
        if wanted == "a text" and isinstance(error.instance, int | Decimal):
            sentence += " Put it in quotes."
    findings.add("wrong-type", path, sentence)


def _say_required(error: Fault, path: Path, findings: Findings) -> None:
    for name in _schema_of(error)["required"]:  # type: ignore[union-attr]
        if name not in error.instance:
            place = findings.places.of(path)
            sentence = f"{_named((*path, str(name)))} is missing."
            findings.add_at("missing-field", place, (*path, str(name)), sentence)


def _say_unknown(error: Fault, path: Path, findings: Findings) -> None:
    known = [*_schema_of(error)["properties"]]  # type: ignore[misc]
    unknown = [name for name in error.instance if name not in known]
    for name in unknown[:_MOST_UNKNOWN_FIELDS]:
        is_hinted = not path and name in _HINTS
        hint = f" {_HINTS[name]}" if is_hinted else nearest(name, known)
        sentence = f"There is no field {quoted(name)} here.{hint}"
        findings.add("unknown-field", (*path, name), sentence, name=True)
    if len(unknown) > _MOST_UNKNOWN_FIELDS:
        sentence = f"There are {len(unknown)} fields here that are not known."
        findings.add("unknown-field", path, sentence)


def _say_enum(error: Fault, path: Path, findings: Findings) -> None:
    schema = _schema_of(error)
    words = [
        str(word) if isinstance(word, str) else shown_json(word) for word in error.validator_value
    ]
    found = _found(error.instance)
    if "$comment" in schema:
        sentence = f"{schema['$comment']} Found: {found}."
    else:
        one_of = words[0] if len(words) == 1 else f"one of {', '.join(words)}"
        sentence = f"{_named(path)} must be {one_of}, not {found}."
    if isinstance(error.instance, str):
        sentence += nearest(error.instance, words)
    findings.add("unknown-word", path, sentence)


def _say_comment(error: Fault, path: Path, findings: Findings) -> None:
    findings.add("wrong-form", path, str(_schema_of(error)["$comment"]))


def _say_size(error: Fault, path: Path, findings: Findings) -> None:
    most = error.validator_value
    code, words = {
        "minimum": ("too-small", f"must be {most} or more, not {_found(error.instance)}"),
        "maximum": ("too-large", f"must be {most} or less, not {_found(error.instance)}"),
        "minLength": ("empty", "is empty: give it a text, or leave it out"),
        "maxLength": ("too-long", f"is too long: at most {most} characters"),
        "minItems": ("too-few", f"must hold {most} or more"),
        "maxItems": ("too-many", f"holds too many: at most {most}"),
        "minProperties": ("too-few", "is empty: give it a name and a value, or leave it out"),
        "maxProperties": ("too-many", f"holds too many: at most {most}"),
    }[str(error.validator)]
    findings.add(code, path, f"{_named(path)} {words}.")


def _say_pattern(error: Fault, path: Path, findings: Findings) -> None:
    if not error.instance:
        return  # it is said that this is empty
    if error.validator_value == ONE_LINE:
        rule = "It is one line, with nothing blank around it."
    else:
        rule = str(_schema_of(error)["description"])
    sentence = f"{_named(path)} cannot be {quoted(error.instance)}. {rule}"
    findings.add("bad-name", path, sentence)


SAYERS: Final[dict[str, Callable[[Fault, Path, Findings], None]]] = {
    "type": _say_type,
    "required": _say_required,
    "additionalProperties": _say_unknown,
    "enum": _say_enum,
    "oneOf": _say_comment,
    "anyOf": _say_comment,
    "not": _say_comment,
    "pattern": _say_pattern,
    **dict.fromkeys(
        (
            "minimum",
            "maximum",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
        ),
        _say_size,
    ),
}
