"""Exporters' names of a state before and after a chunk."""

import re
from collections.abc import Iterator

from pulse.support.record import record


@record
class NameRule:
    """Makes the name of a state's next value from the name of the state: a pattern and its replacement.

    pattern      regular expression of a state's name
    replacement  its replacement
    is_certain   whether only states are named so; ``x_in`` and ``x_out`` may be a signal before and after as well
    """

    pattern: str
    replacement: str
    is_certain: bool = True

    def apply(self, name: str) -> str | None:
        """Return the name of the next value; None if the rule does not match."""
        other, count = re.subn(self.pattern, self.replacement, name)
        return other if count and other != name else None


def _word(old: str, new: str, is_certain: bool = True) -> NameRule:
    """Return the rule that replaces one word of a name by another; any character that is not a letter ends a word."""
    return NameRule(rf"(?<![A-Za-z]){old}(?![A-Za-z])", new, is_certain)


_BEFORE_NUMBER = r"(?=[._][0-9]+\Z)"
"""The place before the number of a state, as in ``enc_state.1``, ``enc_state_next.1``."""

NAME_RULES = (
    *(NameRule(r"\Z", end) for end in ("N", "n", "_n", "_new", "_next", "_updated")),
    *(NameRule(_BEFORE_NUMBER, end) for end in ("_n", "_new", "_next", "_updated")),
    *(NameRule(r"\A", start) for start in ("new_", "next_", "updated_")),
    NameRule(r"_?0\Z", "n"),
    NameRule(r"_0\Z", "_n"),
    _word("past_key_values", "present"),
    _word("past", "present"),
    _word("past", "next"),
    _word("prev", "next"),
    _word("prev", "new"),
    _word("previous", "next"),
    _word("old", "new"),
    _word("hx", "hy"),
    _word("cx", "cy"),
    *(NameRule(r"\Z", end, is_certain=False) for end in ("_out", "_output", "_o", "Out")),
    *(NameRule(_BEFORE_NUMBER, end, is_certain=False) for end in ("_out", "_output")),
    *(NameRule(r"\A", start, is_certain=False) for start in ("out_", "output_", "r_")),
    NameRule(r"\A(?:prev|previous|past|old)_", "", is_certain=False),
    NameRule(r"\Ai_", "o_", is_certain=False),
    _word("in", "out", is_certain=False),
    _word("IN", "OUT", is_certain=False),
    _word("input", "output", is_certain=False),
    _word("init", "final", is_certain=False),
    _word("initial", "final", is_certain=False),
    NameRule(r"In(?![a-z])", "Out", is_certain=False),
    _word("s", "o", is_certain=False),
)
"""The sure ones first: ``h``, ``hn``; ``state``, ``stateN``; ``x``, ``new_x``; ``h0``, ``hn``; ``past.0``,
``present.0``. Then ``cache``, ``cache_out``; ``cache_in_0``, ``cache_out_0``; ``stateIn``, ``stateOut``; ``s0``,
``o0``; ``att_cache``, ``r_att_cache``; ``prev_h``, ``h``."""

_STATE_WORDS = (
    "state stateful cache hidden memory mem buffer buf past prev previous history hist context ctx carry lstm gru rnn "
    "h c s hx cx"
)
_STATE_WORD = re.compile(rf"(?<![a-z])({'|'.join(_STATE_WORDS.split())})s?(?![a-z])")


def next_names(name: str) -> Iterator[tuple[str, NameRule]]:
    """Yield the possible names of a state's next value, and their rules."""
    for rule in NAME_RULES:
        other = rule.apply(name)
        if other is not None:
            yield other, rule


def looks_like_state(name: str) -> bool:
    """Return whether the name has a word that is usual for states."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return _STATE_WORD.search(spaced.lower()) is not None
