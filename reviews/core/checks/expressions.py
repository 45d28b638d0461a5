"""Conditions of contracts: CEL in three values, bounded in time and size.

The library `cel` evaluates; around it stand a reader of the syntax (`cel_syntax`), strict operators
(`strict_functions`) and bounds. A missing field, a null operand and a value of another type make an
answer *unknown* unless the expression asks for them: has(a.b), a.b == null, a.b in [null, ""].
`&&`, `||`, `exists` and `all` take up what is unknown as far as the rest decides, in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, assert_never

from reviews.core.checks.cel_syntax import Form, Node, Syntax, SyntaxProblem, syntax_of
from reviews.core.checks.strict_functions import (
    STRICT_FUNCTIONS,
    UNKNOWN,
    held_number,
    search_of,
)
from traces.core.values import Json

WHEN_NAMES: Final = frozenset(("facts",))
WHERE_NAMES: Final = frozenset(("args", "result", "error", "text", "facts", "step"))

MOST_VALUES: Final = 200_000  # of what an expression sees
MOST_TEXT: Final = 8_000_000  # characters of what an expression sees
MOST_COPIED: Final = 50_000_000  # characters that an evaluation may come to hold
MOST_WORK: Final = 4_000_000  # estimated steps of one evaluation
MOST_LEAVES: Final = 20_000  # parts that are asked one by one
DEEPEST: Final = 100  # a value below is not looked at

TOO_LARGE: Final = "What the condition looks at is too large to evaluate."
_CHARS_A_STEP: Final = 1_000
_MOST_TRUTHS: Final = 32  # remembered of one value
_VALUES_A_STEP: Final = 10
_NOT_A_TRUTH: Final = "a value is neither true nor false"
_NO_VALUE: Final = "a value is missing, null or of another type"


class Answer(StrEnum):
    """What a condition says."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Truth:
    """What a condition says, and for unknown and error why."""

    answer: Answer
    reason: str = ""


TRUE: Final = Truth(Answer.TRUE)
FALSE: Final = Truth(Answer.FALSE)


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A condition that was read and compiled."""

    text: str
    syntax: Syntax
    program: Any
    functions: tuple[str, ...]  # of the strict ones
    _leaves: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def leaf(self, node: Node) -> Any:
        """The program of a part."""
        if node.text not in self._leaves:
            self._leaves[node.text] = _cel().compile(node.text)
        return self._leaves[node.text]


class ExpressionError(ValueError):
    """The text is no condition. `sentence` says why, with the column, for people."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class Ready:
    """A value, made ready for the library once, when an expression first wants it."""

    __slots__ = ("_size", "_truths", "value")

    def __init__(self, value: Json) -> None:
        self.value = value
        self._size: _Size | None = None
        self._truths: dict[Expression, Truth] = {}

    def size(self) -> _Size:
        """How large it is, and what the library holds of it."""
        if self._size is None:
            self._size = _Size(self.value)
        return self._size

    def truth(self, expression: Expression, name: str) -> Truth:
        """What a condition that sees nothing else says of it, remembered."""
        truth = self._truths.get(expression)
        if truth is None:
            if len(self._truths) >= _MOST_TRUTHS:
                self._truths.clear()
            truth = self._truths[expression] = _evaluated(expression, Bindings({name: self}))
        return truth


class Bindings:
    """The values of names, made ready for the library when an expression first wants them.

    What many events see is `Ready`. A name without a value is unknown.
    """

    __slots__ = ("_context", "_functions", "_sizes", "values")

    def __init__(self, values: Mapping[str, Json | Ready]) -> None:
        self.values = values
        self._sizes: dict[str, _Size] = {}
        self._context: Any = None
        self._functions: set[str] = set()

    def context(self, names: Collection[str], functions: Collection[str]) -> Any:
        """The library's context with these names in it, shared by all expressions."""
        if self._context is None:
            self._context = _cel().Context({}, {})
        for name in functions:
            if name not in self._functions:
                self._functions.add(name)
                self._context.add_function(name, STRICT_FUNCTIONS[name])
        for name in names:
            if name not in self._sizes and name in self.values:
                value = self.values[name]
                size = value.size() if isinstance(value, Ready) else _Size(value)
                self._sizes[name] = size
                if not size.is_too_large:
                    self._context.add_variable(name, size.held)
        return self._context

    def context_of(self, names: Collection[str]) -> Any:
        """A context of its own with these names only, of those that are ready."""
        held = {name: self._sizes[name].held for name in names if name in self._sizes}
        return _cel().Context(held, STRICT_FUNCTIONS)

    def n_values(self, names: Collection[str]) -> int:
        """How many values these names hold."""
        return sum(self._sizes[name].n_values for name in names if name in self._sizes)

    def work(self, syntax: Syntax) -> int:
        """How many steps an evaluation may take, at most. Raises _TooLargeError."""
        sizes = [self._sizes[name] for name in syntax.names if name in self._sizes]
        if any(size.is_too_large for size in sizes):
            raise _TooLargeError
        node, n_tokens = syntax.node, syntax.n_tokens
        longest = max([size.longest for size in sizes], default=0)
        each = n_tokens + longest // _CHARS_A_STEP
        n_copies = n_tokens
        if node.copies:
            widest = sum(size.widest for size in sizes) + n_tokens
            each += widest
            n_copies += widest
        if n_copies * longest > MOST_COPIED:
            raise _TooLargeError
        if not node.loops:
            return each
        return int((self.n_values(syntax.names) + n_tokens) ** node.loops) * each


class _TooLargeError(Exception):
    """An evaluation would take too long or too much memory."""


class _Size:
    """How large a value is, found while it is made ready for the library.

    `held` is the value as the library holds it; it stops early where there is too much.
    """

    __slots__ = ("_texts", "held", "is_too_large", "longest", "n_values", "widest")

    def __init__(self, value: Json) -> None:
        self._texts: list[str] = []
        self.n_values = 0
        self.widest = 0
        self.held = self._part(value, 0)
        lengths = list(map(len, self._texts))
        self._texts = []
        self.longest = max(lengths, default=0)
        self.is_too_large = self._has_too_many or sum(lengths) > MOST_TEXT

    @property
    def _has_too_many(self) -> bool:
        return self.n_values > MOST_VALUES or self.widest > MOST_VALUES

    def _part(self, value: Json, depth: int) -> Any:
        self.n_values += 1
        if isinstance(value, str):
            self._texts.append(value)
            return value if value.isascii() else _held_text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float | Decimal):
            return held_number(value)
        self.widest = max(self.widest, len(value))
        if depth >= DEEPEST or self._has_too_many:
            return UNKNOWN
        if isinstance(value, dict):
            self._texts.extend(value)
            if not all(map(str.isascii, value)):
                value = {n: item for n, item in value.items() if _held_text(n) is not UNKNOWN}
            return {name: self._part(item, depth + 1) for name, item in value.items()}
        return [self._part(item, depth + 1) for item in value]


def _held_text(text: str) -> Any:
    try:
        text.encode()
    except UnicodeEncodeError:
        return UNKNOWN
    return text


@lru_cache(maxsize=1)
def _cel() -> ModuleType:
    # It brings a command line along, which takes a fifth of a second to import.
    import cel

    return cel


@lru_cache(maxsize=4096)
def compiled(text: str, names: frozenset[str]) -> Expression:
    """The condition of a text that may begin with these names. Raises ExpressionError."""
    try:
        syntax = syntax_of(text, names, _string_value)
    except SyntaxProblem as problem:
        raise ExpressionError(problem.sentence) from None
    try:
        program = _cel().compile(syntax.node.text)
    except ValueError:
        raise ExpressionError("Not an expression that CEL can read.") from None
    _check_patterns(syntax)
    functions = tuple(name for name in program.functions() if name in STRICT_FUNCTIONS)
    return Expression(text, syntax, program, functions)


def expression_problem(text: str, names: Collection[str]) -> str:
    """Why a text is no condition, for people; "" where it is one."""
    try:
        compiled(text, frozenset(names))
    except ExpressionError as error:
        return error.sentence
    return ""


def evaluate(expression: Expression, bindings: Bindings) -> Truth:
    """What a condition says of some values. Never raises."""
    if len(expression.syntax.names) == 1:
        (name,) = expression.syntax.names
        value = bindings.values.get(name)
        if isinstance(value, Ready):
            return value.truth(expression, name)
    return _evaluated(expression, bindings)


def work_in_loops(expression: Expression, bindings: Bindings) -> int:
    """How many steps a condition takes that goes through lists; 0 of another one.

    Remembered answers count too, so that what a check says depends on nothing before it.
    """
    syntax = expression.syntax
    if not syntax.node.loops:
        return 0
    bindings.context(syntax.names, expression.functions)
    try:
        return min(bindings.work(syntax), MOST_WORK)
    except _TooLargeError:
        return 0


def _evaluated(expression: Expression, bindings: Bindings) -> Truth:
    syntax = expression.syntax
    try:
        context = bindings.context(syntax.names, expression.functions)
        if bindings.work(syntax) > MOST_WORK:
            return Truth(Answer.ERROR, TOO_LARGE)
        truth = _said(expression.program, context)
        if truth.answer is Answer.UNKNOWN and syntax.node.nested:
            return _PartByPart(expression, bindings).truth(syntax.node)
    except _TooLargeError:
        return Truth(Answer.ERROR, TOO_LARGE)
    return truth


def _said(program: Any, context: Any) -> Truth:
    try:
        value = _value(program, context)
    except Exception as error:  # noqa: BLE001 - whatever it is, the values do not tell
        return Truth(Answer.UNKNOWN, _reason(error))
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    if value is None or isinstance(value, bytes):
        return Truth(Answer.UNKNOWN, _NO_VALUE)
    return Truth(Answer.UNKNOWN, _NOT_A_TRUTH)


def _value(program: Any, context: Any) -> Any:
    try:
        return program.execute(context)
    except Exception:
        raise
    except BaseException as error:
        # A fault inside the library is no Exception of Python.
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError("the library failed") from None


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        return f"there is no field {error.args[0][:100]!r}"
    return _NO_VALUE


class _PartByPart:
    """Asks the parts of a condition one by one where it cannot be told as a whole.

    The library ends an `exists` at the first element that cannot be told, though another decides.
    """

    def __init__(self, expression: Expression, bindings: Bindings) -> None:
        self.expression = expression
        self.bindings = bindings
        self.leaves: dict[str, _Leaf] = {}
        self.variables: dict[str, Any] = {}
        self.n_steps = 0

    def truth(self, node: Node) -> Truth:
        match node.form:
            case Form.LEAF:
                leaf = self._leaf(node)
                return _said(leaf.program, leaf.context)
            case Form.NOT:
                return _not(self.truth(node.parts[0]))
            case Form.AND:
                return _first_of(map(self.truth, node.parts), FALSE, TRUE)
            case Form.OR:
                return _first_of(map(self.truth, node.parts), TRUE, FALSE)
            case Form.CHOICE:
                condition, then, other = node.parts
                truth = self.truth(condition)
                if truth.answer not in {Answer.TRUE, Answer.FALSE}:
                    return truth
                return self.truth(then if truth.answer is Answer.TRUE else other)
            case Form.EXISTS:
                return self._over(node, TRUE, FALSE)
            case Form.ALL:
                return self._over(node, FALSE, TRUE)
            case _:
                assert_never(node.form)

    def _over(self, node: Node, deciding: Truth, otherwise: Truth) -> Truth:
        range_, body = node.parts
        leaf = self._leaf(range_)
        try:
            elements = _value(leaf.program, leaf.context)
        except Exception as error:  # noqa: BLE001 - whatever it is, the values do not tell
            return Truth(Answer.UNKNOWN, _reason(error))
        if not isinstance(elements, list | dict):
            return Truth(Answer.UNKNOWN, _NO_VALUE)
        truths = (self._with(node.variable, element, body) for element in elements)
        return _first_of(truths, deciding, otherwise)

    def _with(self, variable: str, element: Any, body: Node) -> Truth:
        self.variables[variable] = element
        return self.truth(body)

    def _leaf(self, node: Node) -> _Leaf:
        """A part, ready to be asked: it sees only what it names, for a fault costs as much."""
        leaf = self.leaves.get(node.text)
        if leaf is None:
            program = self.expression.leaf(node)
            names = frozenset(program.variables())
            context = self.bindings.context_of(names)
            n_steps = 1 + self.bindings.n_values(names) // _VALUES_A_STEP
            leaf = self.leaves[node.text] = _Leaf(program, context, names, n_steps)
        self.n_steps += leaf.n_steps
        if self.n_steps > MOST_LEAVES:
            raise _TooLargeError
        for name in leaf.names & self.variables.keys():
            leaf.context.add_variable(name, self.variables[name])
        return leaf


@dataclass(frozen=True, slots=True)
class _Leaf:
    program: Any
    context: Any
    names: frozenset[str]
    n_steps: int


def _not(truth: Truth) -> Truth:
    if truth.answer is Answer.TRUE:
        return FALSE
    return TRUE if truth.answer is Answer.FALSE else truth


def _first_of(truths: Iterable[Truth], deciding: Truth, otherwise: Truth) -> Truth:
    """The deciding truth if there is one, else the first that is open, else the other."""
    open_one: Truth | None = None
    for truth in truths:
        if truth.answer is deciding.answer:
            return truth
        if open_one is None and truth.answer is not otherwise.answer:
            open_one = truth
    return open_one or otherwise


def _string_value(literal: str) -> str | None:
    try:
        value = _cel().compile(literal).execute({})
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _check_patterns(syntax: Syntax) -> None:
    for pattern, column in syntax.patterns:
        try:
            search_of(pattern)
        except ValueError:
            sentence = f"The pattern is no regular expression, or too large (column {column})."
            raise ExpressionError(sentence) from None
