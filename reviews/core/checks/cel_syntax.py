"""The syntax of CEL expressions, as far as contracts may use it.

A text is read into nodes that carry the text again, rewritten: equality, order, membership and
arithmetic become calls of the strict functions in `strict_functions`, so that the library which
evaluates them never takes a missing or foreign value for an answer. What is read here is bounded:
length, depth, nested macros, the size of patterns. Source: the CEL specification's grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NoReturn

MOST_CHARS: Final = 2_000
MOST_DEPTH: Final = 32  # of operations inside one another
MOST_NESTED_MACROS: Final = 2
MOST_PATTERN_CHARS: Final = 500
MOST_PATTERN_SIZE: Final = 2_000  # of a pattern with its counted repetitions written out

INTEGERS: Final = range(-(2**63), 2**63)

_TOKEN = re.compile(
    r"""(?:\s|//[^\n]*)*+(?:
      (?P<string>[rR]?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    | (?P<number>0[xX][0-9a-fA-F]+[uU]?
        |[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?
        |[0-9]+[uU]?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<mark>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{}])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_RAW_STRING = re.compile(r"""[rR]('''|\"\"\"|'|")(.*)\1\Z""", re.DOTALL)
_RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
        "in",
        "true",
        "false",
        "null",
    ]
)
_ORDERS: Final = {"<": "lt_", "<=": "le_", ">": "gt_", ">=": "ge_"}
_ARITHMETIC: Final = {"+": "add_", "-": "sub_", "*": "mul_", "/": "div_", "%": "mod_"}
_FUNCTIONS: Final = {  # how many arguments each takes; its result is no truth
    "size": 1,
    "int": 1,
    "uint": 1,
    "double": 1,
    "string": 1,
    "timestamp": 1,
    "duration": 1,
}
_STRICT: Final = frozenset(("size", "string"))
_TESTS: Final = ("contains", "startsWith", "endsWith")
_CLOCK: Final = frozenset(
    [
        "getFullYear",
        "getMonth",
        "getDate",
        "getDayOfMonth",
        "getDayOfWeek",
        "getDayOfYear",
        "getHours",
        "getMinutes",
        "getSeconds",
        "getMilliseconds",
    ]
)
_MACROS: Final = ("all", "exists", "exists_one", "map", "filter")


class SyntaxProblem(ValueError):  # noqa: N818 - it is one, and says so to people
    """The text is no expression that a contract may hold. `sentence` is for people."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class Form(StrEnum):
    """What of a node matters when its parts are asked one by one."""

    LEAF = "leaf"
    AND = "and"
    OR = "or"
    NOT = "not"
    CHOICE = "choice"  # condition, then, else
    EXISTS = "exists"  # range, body
    ALL = "all"


class Says(StrEnum):
    """What a node's value can be."""

    TRUTH = "truth"
    OTHER = "other"  # never a truth
    ANY = "any"  # as the data are


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression."""

    text: str  # rewritten, complete in itself
    says: Says
    form: Form = Form.LEAF
    parts: tuple[Node, ...] = ()
    variable: str = ""  # of a macro
    root: str = ""  # the name that a chain of fields starts from
    depth: int = 1
    nested: int = 0  # macros inside one another
    loops: int = 0  # nested macros whose ranges do not come from one another
    copies: bool = False  # it holds a macro that makes a list
    is_null: bool = False
    holds_null: bool = False  # a written list with null in it
    string: str | None = None  # the literal as it is written


@dataclass(frozen=True, slots=True)
class Syntax:
    """An expression that was read."""

    node: Node
    names: frozenset[str]  # the roots that it uses
    patterns: tuple[tuple[str, int], ...]  # with their columns
    n_tokens: int


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int


def syntax_of(
    text: str, names: Collection[str], string_value: Callable[[str], str | None]
) -> Syntax:
    """Read an expression that may begin with these names. Raises SyntaxProblem.

    `string_value` gives the value of a string literal, None where it is none.
    """
    if len(text) > MOST_CHARS:
        raise SyntaxProblem(
            f"The expression is too long: {len(text):,} characters (max {MOST_CHARS:,})."
        )
    return _Reader(_tokens(text), names, string_value).syntax()


def _tokens(text: str) -> tuple[_Token, ...]:
    found: list[_Token] = []
    position = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, position)
        if match is None:
            column = position + len(text[position:]) - len(text[position:].lstrip()) + 1
            _refuse(f"{_shown(text[column - 1])} cannot stand here", column)
        kind = match.lastgroup or ""
        found.append(_Token(kind, match[kind], match.start(kind) + 1))
        position = match.end()
    return tuple(found)


def _refuse(what: str, column: int) -> NoReturn:
    raise SyntaxProblem(f"{what} (column {column}).")


def _shown(text: str) -> str:
    written = text if len(text) <= 40 else f"{text[:39]}…"
    return f"`{written}`" if written.isprintable() else ascii(written)


class _Reader:
    """A recursive descent over the tokens; its recursion is bounded by MOST_DEPTH."""

    def __init__(
        self,
        tokens: tuple[_Token, ...],
        names: Collection[str],
        string_value: Callable[[str], str | None],
    ) -> None:
        self.tokens = tokens
        self.names = names
        self.string_value = string_value
        self.at = 0
        self.level = 0
        self.variables: list[str] = []
        self.used: set[str] = set()
        self.patterns: list[tuple[str, int]] = []

    def syntax(self) -> Syntax:
        if self.token.kind == "end":
            raise SyntaxProblem("The expression is empty.")
        node = self._expression()
        if self.token.kind != "end":
            self._unexpected()
        if node.says is Says.OTHER:
            raise SyntaxProblem("The expression is never true or false: it must ask something.")
        return Syntax(node, frozenset(self.used), tuple(self.patterns), len(self.tokens))

    # Tokens

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def _take(self) -> _Token:
        token = self.token
        self.at += 1
        return token

    def _is(self, *marks: str) -> bool:
        return self.token.kind == "mark" and self.token.text in marks

    def _accept(self, mark: str) -> bool:
        if self._is(mark):
            self.at += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            self._unexpected(f"`{mark}`")

    def _unexpected(self, wanted: str = "") -> NoReturn:
        token = self.token
        what = "the expression ends" if token.kind == "end" else f"{_shown(token.text)} stands"
        instead = f" where {wanted} is wanted" if wanted else " where nothing more can follow"
        _refuse(f"Not an expression: {what}{instead}", token.column)

    # Nodes

    def _made(
        self, text: str, says: Says, *parts: Node, form: Form = Form.LEAF, copies: bool = False
    ) -> Node:
        depth = 1 + max((part.depth for part in parts), default=0)
        self._check_depth(depth)
        return Node(
            text,
            says,
            form=form,
            parts=parts if form is not Form.LEAF else (),
            depth=depth,
            nested=max((part.nested for part in parts), default=0),
            loops=max((part.loops for part in parts), default=0),
            copies=copies or any(part.copies for part in parts),
        )

    def _check_depth(self, depth: int) -> None:
        if depth > MOST_DEPTH:
            _refuse(f"The expression is too deep (max {MOST_DEPTH})", self.token.column)

    def _truth(self, node: Node, column: int) -> Node:
        if node.says is Says.OTHER:
            _refuse("Not an expression: this is never true or false", column)
        return node

    # Grammar, the loosest binding first

    def _expression(self) -> Node:
        self.level += 1
        self._check_depth(self.level)
        column = self.token.column
        node = self._joined("||", Form.OR, lambda: self._joined("&&", Form.AND, self._relation))
        if self._accept("?"):
            self._truth(node, column)
            then = self._joined("||", Form.OR, lambda: self._joined("&&", Form.AND, self._relation))
            self._expect(":")
            other = self._expression()
            says = then.says if then.says is other.says else Says.ANY
            text = f"({node.text} ? {then.text} : {other.text})"
            node = self._made(text, says, node, then, other, form=Form.CHOICE)
        self.level -= 1
        return node

    def _joined(self, mark: str, form: Form, read: Callable[[], Node]) -> Node:
        column = self.token.column
        parts = [read()]
        while self._accept(mark):
            self._truth(parts[-1], column)
            column = self.token.column
            parts.append(self._truth(read(), column))
        if len(parts) == 1:
            return parts[0]
        text = f"({f' {mark} '.join(part.text for part in parts)})"
        return self._made(text, Says.TRUTH, *parts, form=form)

    def _relation(self) -> Node:
        node = self._sum()
        while True:
            if self._is("==", "!="):
                mark = self._take().text
                node = self._equality(mark, node, self._sum())
            elif self._is(*_ORDERS):
                name = _ORDERS[self._take().text]
                other = self._sum()
                node = self._made(f"{name}({node.text}, {other.text})", Says.TRUTH, node, other)
            elif self.token.kind == "name" and self.token.text == "in":
                self._take()
                other = self._sum()
                name = "in_null_" if other.holds_null else "in_"
                node = self._made(f"{name}({node.text}, {other.text})", Says.TRUTH, node, other)
            else:
                return node

    def _equality(self, mark: str, left: Node, right: Node) -> Node:
        asked = left if right.is_null else right
        if left.is_null or right.is_null:
            text = f"is_null_({asked.text})"
        else:
            text = f"eq_({left.text}, {right.text})"
        node = self._made(text, Says.TRUTH, left, right)
        if mark == "==":
            return node
        return self._made(f"(!{text})", Says.TRUTH, node, form=Form.NOT)

    def _sum(self) -> Node:
        return self._arithmetic(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._arithmetic(("*", "/", "%"), self._unary)

    def _arithmetic(self, marks: tuple[str, ...], read: Callable[[], Node]) -> Node:
        node = read()
        while self._is(*marks):
            name = _ARITHMETIC[self._take().text]
            other = read()
            node = self._made(f"{name}({node.text}, {other.text})", Says.OTHER, node, other)
        return node

    def _unary(self) -> Node:
        column = self.token.column
        if not self._is("!", "-"):
            return self._member()
        self.level += 1
        self._check_depth(self.level)
        mark = self._take().text
        if mark == "-" and self.token.kind == "number":
            node = self._fields(self._number("-"))
        elif mark == "-":
            part = self._unary()
            node = self._made(f"neg_({part.text})", Says.OTHER, part)
        else:
            part = self._truth(self._unary(), column + 1)
            node = self._made(f"(!{part.text})", Says.TRUTH, part, form=Form.NOT)
        self.level -= 1
        return node

    def _member(self) -> Node:
        return self._fields(self._primary())

    def _fields(self, node: Node) -> Node:
        while True:
            if self._accept("["):
                key = self._expression()
                self._expect("]")
                made = self._made(f"{node.text}[{key.text}]", Says.ANY, node, key)
                node = _rooted(made, node.root)
            elif self._accept("."):
                if self.token.kind != "name":
                    self._unexpected("a field's name")
                token = self._take()
                if self._accept("("):
                    node = self._method(node, token)
                elif token.text in _RESERVED:
                    _refuse(f'Write ["{token.text}"] for this field', token.column)
                else:
                    made = self._made(f"{node.text}.{token.text}", Says.ANY, node)
                    node = _rooted(made, node.root)
            else:
                return node

    def _method(self, node: Node, token: _Token) -> Node:
        name = token.text
        if name in _MACROS:
            return self._macro(node, token)
        given = self._arguments()
        texts = ", ".join(part.text for part in given)
        if name == "matches":
            self._check_pattern(given, token)
            return self._made(f"matches_({node.text}, {texts})", Says.TRUTH, node, *given)
        if name in _TESTS:
            _check_number(given, 1, token)
        elif name == "size":
            _check_number(given, 0, token)
            return self._made(f"size_({node.text})", Says.OTHER, node)
        elif name in _CLOCK:
            if len(given) > 1:
                _refuse(f"`{name}` takes one time zone or none", token.column)
        else:
            _refuse(f"There is no function {_shown(name)}", token.column)
        says = Says.OTHER if name in _CLOCK else Says.TRUTH
        return self._made(f"{node.text}.{name}({texts})", says, node, *given)

    def _arguments(self) -> tuple[Node, ...]:
        given: list[Node] = []
        while not self._accept(")"):
            if given:
                self._expect(",")
            given.append(self._expression())
        return tuple(given)

    def _check_pattern(self, given: tuple[Node, ...], token: _Token) -> None:
        _check_number(given, 1, token)
        literal = given[0].string
        if literal is None:
            _refuse("`matches` wants its pattern written out as text", token.column)
        pattern = self.string_value(literal)
        if pattern is None or len(pattern) > MOST_PATTERN_CHARS:
            _refuse(f"The pattern is too long (max {MOST_PATTERN_CHARS} characters)", token.column)
        if _pattern_size(pattern) > MOST_PATTERN_SIZE:
            _refuse("The pattern is too large: it repeats too much", token.column)
        self.patterns.append((pattern, token.column))

    def _macro(self, range_: Node, token: _Token) -> Node:
        name = token.text
        variable = self._variable()
        self._expect(",")
        self.variables.append(variable)
        bodies = [self._expression()]
        if name == "map" and self._accept(","):
            bodies.append(self._expression())
        self._expect(")")
        self.variables.pop()
        if name != "map" or len(bodies) == 2:
            self._truth(bodies[0], token.column)
        form = {"exists": Form.EXISTS, "all": Form.ALL}.get(name, Form.LEAF)
        is_list = name in {"map", "filter"}
        inner = ", ".join((variable, *(body.text for body in bodies)))
        text = f"{range_.text}.{name}({inner})"
        says = Says.OTHER if is_list else Says.TRUTH
        made = self._made(text, says, range_, *bodies, form=form, copies=is_list)
        nested = max(range_.nested, 1 + max(body.nested for body in bodies))
        if nested > MOST_NESTED_MACROS:
            _refuse(
                f"`{name}` stands inside too many others (max {MOST_NESTED_MACROS})", token.column
            )
        # A range inside the variable of the macro around it adds no elements that are not there.
        steps = 0 if range_.root in self.variables and not is_list else 1
        loops = max(range_.loops, steps + max(body.loops for body in bodies))
        return Node(
            text,
            says,
            form=form,
            parts=made.parts,
            variable=variable,
            depth=made.depth,
            nested=nested,
            loops=loops,
            copies=made.copies,
        )

    def _variable(self) -> str:
        token = self._take()
        if token.kind != "name" or token.text in _RESERVED:
            self.at -= 1
            self._unexpected("the name of a variable")
        if token.text in self.names or token.text in self.variables:
            _refuse(f"The name {_shown(token.text)} is taken already", token.column)
        return token.text

    def _primary(self) -> Node:
        token = self.token
        match token.kind:
            case "string":
                self._take()
                if self.string_value(token.text) is None:
                    _refuse("This text is not written as CEL wants it", token.column)
                return Node(token.text, Says.OTHER, string=token.text)
            case "number":
                return self._number("")
            case "name":
                return self._name(self._take())
            case "mark" if token.text in {"(", "[", "{"}:
                self._take()
                return {"(": self._group, "[": self._list, "{": self._map}[token.text]()
            case _:
                return self._unexpected("a value")

    def _number(self, sign: str) -> Node:
        token = self._take()
        written = token.text.lower()
        whole = written.rstrip("u")
        is_hexadecimal = whole.startswith("0x")
        if is_hexadecimal or whole.isdigit():
            number = int(sign + whole, 16 if is_hexadecimal else 10) if len(whole) < 30 else None
            is_unsigned = whole != written
            if number is None or number not in (range(2**64) if is_unsigned else INTEGERS):
                _refuse("This whole number is too large", token.column)
            return Node(f"(-{token.text})" if sign else token.text, Says.OTHER)
        if float(written) == float("inf"):
            _refuse("This number is too large", token.column)
        text = f"{sign}0{token.text}" if written.startswith(".") else f"{sign}{token.text}"
        return Node(f"({text})" if sign else text, Says.OTHER)

    def _name(self, token: _Token) -> Node:
        name = token.text
        if name in {"true", "false"}:
            return Node(name, Says.TRUTH)
        if name == "null":
            return Node(name, Says.OTHER, is_null=True)
        if self._accept("("):
            return self._function(token)
        if name in self.variables:
            return Node(name, Says.ANY, root=name)
        if name not in self.names or name in _RESERVED:
            known = ", ".join(sorted(self.names))
            _refuse(f"Unknown name {_shown(name)}: only {known} may stand here", token.column)
        self.used.add(name)
        return Node(name, Says.ANY, root=name)

    def _function(self, token: _Token) -> Node:
        name = token.text
        if name == "has":
            return self._has(token)
        given = self._arguments()
        if name not in _FUNCTIONS:
            _refuse(f"There is no function {_shown(name)}", token.column)
        _check_number(given, _FUNCTIONS[name], token)
        called = f"{name}_" if name in _STRICT else name
        return self._made(f"{called}({given[0].text})", Says.OTHER, *given)

    def _has(self, token: _Token) -> Node:
        part = self._expression()
        self._expect(")")
        last = self.tokens[self.at - 2]
        if not part.root or part.text == part.root or last.kind != "name":
            _refuse("`has` asks for a field, as in has(args.amount)", token.column)
        return self._made(f"has({part.text})", Says.TRUTH, part)

    def _group(self) -> Node:
        node = self._expression()
        self._expect(")")
        return node

    def _list(self) -> Node:
        items: list[Node] = []
        while not self._accept("]"):
            if items:
                self._expect(",")
                if self._accept("]"):
                    break
            items.append(self._expression())
        made = self._made(f"[{', '.join(item.text for item in items)}]", Says.OTHER, *items)
        if any(item.is_null for item in items):
            return Node(
                made.text,
                Says.OTHER,
                depth=made.depth,
                loops=made.loops,
                nested=made.nested,
                copies=made.copies,
                holds_null=True,
            )
        return made

    def _map(self) -> Node:
        parts: list[Node] = []
        texts: list[str] = []
        while not self._accept("}"):
            if parts:
                self._expect(",")
                if self._accept("}"):
                    break
            key = self._expression()
            self._expect(":")
            value = self._expression()
            parts += (key, value)
            texts.append(f"{key.text}: {value.text}")
        return self._made(f"{{{', '.join(texts)}}}", Says.OTHER, *parts)


def _rooted(node: Node, root: str) -> Node:
    return Node(
        node.text,
        node.says,
        root=root,
        depth=node.depth,
        nested=node.nested,
        loops=node.loops,
        copies=node.copies,
    )


def _check_number(given: tuple[Node, ...], n: int, token: _Token) -> None:
    if len(given) != n:
        what = "nothing" if n == 0 else "one value"
        _refuse(f"`{token.text}` takes {what}, not {len(given)}", token.column)


_REPETITION = re.compile(r"\{([0-9]{1,9})(?:,([0-9]{0,9}))?\}")
_CLASS = re.compile(r"\\[wWdDsSbB]|\\([pP])")


def _pattern_size(pattern: str) -> int:
    """An upper estimate of how large a pattern is once its counted repetitions are written out."""
    size = len(pattern) + sum(30 if match[1] else 9 for match in _CLASS.finditer(pattern))
    for match in _REPETITION.finditer(pattern):
        size *= max(int(match[1]), int(match[2] or 0), 1)
        if size > MOST_PATTERN_SIZE:
            break
    return size
