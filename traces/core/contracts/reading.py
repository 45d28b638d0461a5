"""Contract texts read: each document comes to a contract, or to findings with line and column."""

from __future__ import annotations

from traces.core.contracts.building import contract_of
from traces.core.contracts.conforming import check_shape
from traces.core.contracts.documents import (
    FAST_LOADER,
    MOST_TEXT_NODES,
    Chunk,
    Document,
    Loader,
    UnreadableTextError,
    chunks_of,
    decoded,
    document_of,
)
from traces.core.contracts.expressions import expressions_of
from traces.core.contracts.model import ContractFinding, ContractReading
from traces.core.contracts.places import Place, TooManyFindingsError


def read_contract(text: str | bytes, loader: Loader = FAST_LOADER) -> ContractReading:
    """The one contract of a text. Never raises, whatever the text is."""
    readings = read_contracts(text, loader)
    if len(readings) > 1:
        line = readings[1].line
        sentence = "A second contract begins here: only one is wanted."
        finding = ContractFinding("second-document", line, 1, "", sentence)
        return ContractReading(readings[0].line, "", None, (finding,))
    return readings[0]


def read_contracts(text: str | bytes, loader: Loader = FAST_LOADER) -> tuple[ContractReading, ...]:
    """The contracts of a text, one a document, at least one. Never raises, whatever the text is."""
    try:
        chunks = chunks_of(decoded(text))
    except UnreadableTextError as error:
        return (_unread(error.code, error.place, str(error)),)
    if not chunks:
        return (_unread("no-contract", (1, 1), "There is no contract in this text."),)
    readings: list[ContractReading] = []
    n_nodes = 0
    for chunk in chunks:
        if n_nodes > MOST_TEXT_NODES:
            sentence = "The text holds too much before this contract: split it."
            finding = ContractFinding("text-too-large", chunk.line, 1, "", sentence)
            readings.append(ContractReading(chunk.line, chunk.text, None, (finding,)))
            continue
        document = document_of(chunk, loader)
        n_nodes += document.n_nodes
        readings.append(_reading_of(chunk, document))
    return tuple(readings)


def _unread(code: str, place: Place, sentence: str) -> ContractReading:
    return ContractReading(1, "", None, (ContractFinding(code, *place, "", sentence),))


def _reading_of(chunk: Chunk, document: Document) -> ContractReading:
    contract = None
    try:
        if document.is_whole:
            check_shape(document)
            contract = contract_of(document)
    except TooManyFindingsError:
        contract = None
    findings = tuple(document.findings.in_order())
    places = document.findings.places.by_field()
    if contract is not None:
        for expression in expressions_of(contract):  # one entry of `any_of` is like none
            inner = expression.field.replace(".where", ".any_of[0].where")
            if expression.field not in places and inner in places:
                places[expression.field] = places[inner]
    return ContractReading(chunk.line, chunk.text, contract, findings, places)
