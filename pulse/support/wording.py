"""The spelling of parameters in messages: as in Python, or as the caller sets it.

A message that gives advice names a parameter of ``pulse.load``, ``pulse.stream`` or ``spawn``. Users who do not
write Python, as on the command line, need another name; so messages use ``spell("inputs")``, and the command sets
with ``use_spelling`` how that is written while it runs.
"""

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, cast

Spelling: TypeAlias = Callable[[str, Any], str]
"""A function of a parameter and an example of its value, or None, that returns how it is written."""


CHUNKING_PARAMETERS = ("states", "context", "axes", "delay", "initial")
"""The parameters that belong to ``pulse.Chunking``."""


def in_python(parameter: str, example: Any = None) -> str:
    """Return ``inputs=``, or ``inputs={"x": "1,80,T"}`` with an example; ``chunking=Chunking(states={})``."""
    text = f"{parameter}={'' if example is None else _literal(example)}"
    return f"chunking=Chunking({text})" if parameter in CHUNKING_PARAMETERS else text


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return "{" + ", ".join(f"{_literal(name)}: {_literal(item)}" for name, item in items) + "}"
    return str(value)


_spelling: ContextVar[Spelling] = ContextVar("spelling", default=in_python)


def spell(parameter: str, example: Any = None) -> str:
    """Return how the user writes a parameter, with the value of the example.

    The example is a number, a name, True, or a mapping of these.
    """
    return _spelling.get()(parameter, example)


def count_of(count: object, noun: str, plural: str | None = None, *, form: str = "") -> str:
    """Return a count with its noun: ``1 frame``, ``2 frames``, ``2*T frames``.

    plural  the noun for other counts than 1; None: with an s
    form    the format of the count: ``,`` for ``2,400 frames``
    """
    return f"{count:{form}} {noun if count == 1 else plural or f'{noun}s'}"


def span_of(first: int, last: int) -> str:
    """Return the frames of streams from the shortest to the longest: ``1 to 4,241 frames``, ``3 frames``."""
    return ("" if first == last else f"{first:,} to ") + count_of(last, "frame", form=",")


def choose_wording(python: str, otherwise: str) -> str:
    """Return the text for users who write Python, or the one for others, as ``spell`` does with parameters."""
    return python if _spelling.get() is in_python else otherwise


def current_spelling() -> Spelling:
    """Return the spelling in use."""
    return _spelling.get()


@contextmanager
def use_spelling(spelling: Spelling) -> Generator[None]:
    """Spell parameters this way in messages that are made inside."""
    token = _spelling.set(spelling)
    try:
        yield
    finally:
        _spelling.reset(token)
