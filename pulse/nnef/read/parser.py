"""The text of ``graph.nnef`` to a document: a recursive descent over the grammar of NNEF 1.0.5."""

import re
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

from pulse.errors import LoadError
from pulse.nnef.syntax import (
    Assignment,
    AssignmentTarget,
    Binary,
    Call,
    Comprehension,
    Conditional,
    Document,
    Expression,
    Fragment,
    Name,
    Parameter,
    Subrange,
    Subscript,
    Unary,
)
from pulse.support.printable import printable
from pulse.support.record import record

Item = TypeVar("Item")

MAX_DEPTH = 60
"""How deep brackets and fragments may be nested."""
TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\n]+|\#[^\n]*)
    |(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>i"(?:[^"\\\n]|\\.)*"|[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>->|<=|>=|==|!=|&&|\|\||[-+*/^<>=!,;:()\[\]{}?])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"<", "<=", ">", ">=", "==", "!=", "in"}),
    frozenset({"+", "-"}),
    frozenset({"*", "/"}),
    frozenset({"^"}),
)
"""The operators between two expressions, from the weakest on."""
TYPES = frozenset({"integer", "scalar", "logical", "string", "complex", "?"})


@record
class Token:
    """A word, number, string or sign; ``kind`` is empty at the end."""

    kind: str
    text: str
    line: int


def parse(text: str, title: str) -> Document:
    """Return the document of a text. Raises LoadError: a line is not NNEF."""
    return _Parser(text, title).document()


def parse_fragments(text: str, title: str) -> tuple[Fragment, ...]:
    """Return fragments without a graph. Raises LoadError: the text is not valid NNEF."""
    parser = _Parser(text, title)
    fragments = parser.fragments()
    parser.end()
    return fragments


class _Parser:
    """Reads a text token by token; its methods read one rule of the grammar each."""

    def __init__(self, text: str, title: str) -> None:
        self._title = title
        self._tokens = _split_into_tokens(text)
        self._position = 0
        self._depth = 0

    def _fail(self, line: int, reason: str) -> NoReturn:
        raise LoadError(f"{self._title}, line {line}: {reason}; see the grammar of NNEF 1.0.5")

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._next
        self._position += 1 if token.kind else 0
        return token

    def _is_next(self, text: str) -> bool:
        return self._next.text == text and self._next.kind in ("sign", "word")

    def _take_if(self, text: str) -> bool:
        """Take the next token if it is this one; return whether it is."""
        if self._is_next(text):
            self._position += 1
            return True
        return False

    def _require(self, text: str) -> None:
        if not self._take_if(text):
            self._fail(self._next.line, f"{text} is expected, not {printable(self._next.text)}")

    def _word(self, expected: str = "a name") -> str:
        token = self._next
        if token.kind != "word":
            self._fail(token.line, f"{expected} is expected, not {printable(token.text)}")
        self._position += 1
        return _unquote(token.text[1:]) if token.text.startswith('i"') else token.text

    def _items(self, read_item: Callable[[], Item], close: str) -> list[Item]:
        """Return items separated by commas, up to a closing bracket."""
        items: list[Item] = []
        while not self._is_next(close):
            items.append(read_item())
            if not self._take_if(","):
                break
        self._require(close)
        return items

    def end(self) -> None:
        if self._next.kind:
            self._fail(self._next.line, f"{printable(self._next.text)} follows the end")

    def document(self) -> Document:
        self._require("version")
        version = self._take().text
        self._require(";")
        if not version.startswith("1."):
            self._fail(1, f"version {printable(version)} is not supported; NNEF 1.0 is")
        extensions: list[tuple[str, ...]] = []
        while self._take_if("extension"):
            words: list[str] = []
            while self._next.kind and not self._is_next(";"):
                words.append(self._take().text)
            self._require(";")
            extensions.append(tuple(words))
        fragments = self.fragments()
        self._require("graph")
        name = self._word()
        self._require("(")
        inputs = tuple(self._items(self._word, ")"))
        self._require("->")
        self._require("(")
        outputs = tuple(self._items(self._word, ")"))
        body = self._body()
        self.end()
        return Document(name, inputs, outputs, body, fragments, tuple(extensions), version)

    def fragments(self) -> tuple[Fragment, ...]:
        fragments: list[Fragment] = []
        while self._take_if("fragment"):
            fragments.append(self._fragment())
        return tuple(fragments)

    def _fragment(self) -> Fragment:
        name, generic = self._word(), None
        if self._take_if("<"):
            self._require("?")
            generic = self._word() if self._take_if("=") else "?"
            self._require(">")
        self._require("(")
        parameters = self._items(self._parameter, ")")
        self._require("->")
        self._require("(")
        results = self._items(self._result, ")")
        body = None if self._take_if(";") else self._body()
        return Fragment(name, tuple(parameters), tuple(results), body, generic)

    def _parameter(self) -> Parameter:
        name, type_name = self._result()
        return Parameter(name, type_name, self._expression() if self._take_if("=") else None)

    def _result(self) -> tuple[str, str]:
        """Return a name and its type."""
        name = self._word()
        self._require(":")
        return name, self._type()

    def _type(self) -> str:
        """Return a type as text; it is not checked."""
        if self._take_if("("):
            name = f"({', '.join(self._items(self._type, ')'))})"
        elif self._take_if("tensor"):
            self._require("<")
            inner = "" if self._is_next(">") else self._plain_type()
            self._require(">")
            name = f"tensor<{inner}>"
        else:
            name = self._plain_type()
        while self._take_if("["):
            self._require("]")
            name += "[]"
        return name

    def _plain_type(self) -> str:
        token = self._take()
        if token.text not in TYPES:
            self._fail(token.line, f"a type is expected, not {printable(token.text)}")
        return token.text

    def _body(self) -> tuple[Assignment, ...]:
        self._require("{")
        assignments: list[Assignment] = []
        while not self._take_if("}"):
            line = self._next.line
            target = self._targets()
            self._require("=")
            value = self._expression()
            self._require(";")
            assignments.append(Assignment(target, value, line))
        return tuple(assignments)

    def _targets(self) -> AssignmentTarget:
        targets = [self._target()]
        while self._take_if(","):
            targets.append(self._target())
        return targets[0] if len(targets) == 1 else tuple(targets)

    def _target(self) -> AssignmentTarget:
        self._enter()
        target: AssignmentTarget
        if self._take_if("("):
            target = tuple(self._items(self._target, ")"))
        elif self._take_if("["):
            target = self._items(self._target, "]")
        else:
            target = self._word()
        self._depth -= 1
        return target

    def _enter(self) -> None:
        """Count a level of nesting; the caller subtracts it at its end. Raises LoadError: there are too many."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(self._next.line, f"brackets are nested more than {MAX_DEPTH} deep")

    def _expression(self) -> Expression:
        self._enter()
        value = self._binary(0)
        if self._take_if("if"):
            condition = self._binary(0)
            self._require("else")
            value = Conditional(value, condition, self._expression())
        self._depth -= 1
        return value

    def _binary(self, level: int) -> Expression:
        if level == len(LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        count = 0
        while self._next.kind in ("sign", "word") and self._next.text in LEVELS[level]:
            count += 1
            if count > MAX_DEPTH:
                self._fail(self._next.line, f"more than {MAX_DEPTH} operators follow each other")
            sign = self._take().text
            left = Binary(left, sign, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        if self._next.kind == "sign" and self._next.text in "+-!":
            self._enter()
            sign = self._take().text
            operand = self._unary()
            self._depth -= 1
            return Unary(sign, operand)
        value = self._atom()
        while self._take_if("["):
            if self._take_if(":"):
                value = Subrange(value, None, None if self._is_next("]") else self._expression())
            else:
                index = self._expression()
                if self._take_if(":"):
                    value = Subrange(value, index, None if self._is_next("]") else self._expression())
                else:
                    value = Subscript(value, index)
            self._require("]")
        return value

    def _atom(self) -> Expression:
        token = self._next
        if token.kind == "number":
            self._position += 1
            return _number(token.text)
        if token.kind == "string":
            self._position += 1
            return _unquote(token.text)
        if self._take_if("("):
            items = self._items(self._expression, ")")
            return items[0] if len(items) == 1 else tuple(items)
        if self._take_if("["):
            return self._comprehension() if self._is_next("for") else self._items(self._expression, "]")
        if token.text in ("true", "false") and token.kind == "word":
            self._position += 1
            return token.text == "true"
        name = self._word("a value")
        return self._call(name) if self._is_next("(") or self._is_type_next() else Name(name)

    def _is_type_next(self) -> bool:
        """Return whether ``<type>(`` follows."""
        following = [token.text for token in self._tokens[self._position : self._position + 4]]
        return (
            len(following) == 4
            and following[0] == "<"
            and following[1] in TYPES
            and following[2:] == [">", "("]
        )

    def _call(self, name: str) -> Call:
        kind = ""
        if self._take_if("<"):
            kind = self._take().text
            self._require(">")
        self._require("(")
        positional: list[Expression] = []
        keywords: list[tuple[str, Expression]] = []
        while not self._is_next(")"):
            follows = self._tokens[min(self._position + 1, len(self._tokens) - 1)]
            if self._next.kind == "word" and follows.kind == "sign" and follows.text == "=":
                argument = self._word()
                self._require("=")
                keywords.append((argument, self._expression()))
            elif keywords:
                self._fail(self._next.line, "an argument without a name follows one with a name")
            else:
                positional.append(self._expression())
            if not self._take_if(","):
                break
        self._require(")")
        return Call(name, tuple(positional), tuple(keywords), kind)

    def _comprehension(self) -> Comprehension:
        loops: list[tuple[str, Expression]] = []
        self._require("for")
        while True:
            variable = self._word()
            self._require("in")
            loops.append((variable, self._binary(0)))
            if not self._take_if(","):
                break
        condition = self._expression() if self._take_if("if") else None
        self._require("yield")
        result = self._expression()
        self._require("]")
        return Comprehension(tuple(loops), condition, result)


def _number(text: str) -> int | float:
    if text.isdigit():
        return int(text) if len(text) < 20 else float(text)
    return float(text)


ESCAPES: Mapping[str, str] = {"n": "\n", "t": "\t"}


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match[1], match[1]), text[1:-1])


def _split_into_tokens(text: str) -> list[Token]:
    """Return the tokens of a text; the last one is its end."""
    tokens: list[Token] = []
    position, line = 0, 1
    while position < len(text):
        match = TOKEN.match(text, position)
        assert match is not None
        kind = match.lastgroup or ""
        if kind != "skip":
            tokens.append(Token(kind, match[0], line))
        line += match[0].count("\n")
        position = match.end()
    tokens.append(Token("", "the end", line))
    return tokens
