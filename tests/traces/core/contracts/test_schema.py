"""The published schema is sound, says what each field means, and every refusal has a sentence."""

from collections.abc import Iterator

from hypothesis import example, given
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from tests.traces.core.contracts.whole import WHOLE, spoiled_documents
from traces.core.contracts.conforming import SAYERS, VALIDATOR
from traces.core.contracts.schema import CONTRACT_SCHEMA, SCHEMA_ID
from traces.core.values import Json, JsonObject

NOT_REFUSING = {
    "$schema", "$id", "$defs", "$ref", "$comment", "title", "description", "properties", "items",
    "allOf", "if", "then", "else",
}  # fmt: skip


def schemas_in(schema: Json) -> Iterator[dict[str, Json]]:
    """Every schema that may refuse a value, conditions and alternatives left aside."""
    if not isinstance(schema, dict):
        return
    yield schema
    for name in ("items", "then", "else", "additionalProperties"):
        yield from schemas_in(schema.get(name))
    for name in ("properties", "$defs"):
        members = schema.get(name)
        for member in members.values() if isinstance(members, dict) else ():
            yield from schemas_in(member)
    members = schema.get("allOf")
    for member in members if isinstance(members, list) else ():
        yield from schemas_in(member)


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(CONTRACT_SCHEMA)
    assert CONTRACT_SCHEMA["$id"] == SCHEMA_ID == "evalsite:contract:1"


def test_every_field_has_a_title_and_a_description() -> None:
    for schema in schemas_in(CONTRACT_SCHEMA):
        members = schema.get("properties", {})
        assert isinstance(members, dict)
        for name, member in members.items():
            assert isinstance(member, dict)
            assert member.get("title"), name
            assert str(member.get("description"))[-1] == ".", name


def test_every_mapping_but_a_message_refuses_fields_that_it_does_not_know() -> None:
    for schema in schemas_in(CONTRACT_SCHEMA):
        if "properties" in schema and schema.get("required") != ["role"]:
            assert schema["additionalProperties"] is False


def test_every_keyword_that_can_refuse_has_a_sentence() -> None:
    used = {name for schema in schemas_in(CONTRACT_SCHEMA) for name in schema}

    assert used - NOT_REFUSING == set(SAYERS)


def test_forms_that_cannot_be_said_in_general_have_a_sentence_of_their_own() -> None:
    forms = [s for s in schemas_in(CONTRACT_SCHEMA) if s.keys() & {"not", "anyOf", "oneOf"}]

    assert len(forms) > 10
    for form in forms:
        assert str(form["$comment"])[-1] == "."


@given(spoiled_documents())
@example(WHOLE)
def test_the_library_finds_the_same_as_the_reader(document: JsonObject) -> None:
    """Conditions are answered here instead of by the library: both must say the same."""
    standard = extend(Draft202012Validator, type_checker=VALIDATOR.TYPE_CHECKER)(CONTRACT_SCHEMA)
    forms = {"oneOf", "not"}  # said of mappings only

    found = {(tuple(e.absolute_path), e.validator) for e in VALIDATOR.iter_errors(document)}

    assert found == {
        (tuple(error.absolute_path), error.validator)
        for error in standard.iter_errors(document)
        if error.validator not in forms or isinstance(error.instance, dict)
    }
