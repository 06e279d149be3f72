# pyright: basic
"""Conditions on lengths in a module's code, which an export decides as the example does."""

import contextlib
import linecache
import sys
from collections.abc import Generator
from importlib import import_module
from typing import Any, NamedTuple

from pulse.torch.advice import is_author
from pulse.torch.own_thread import OwnThread
from pulse.torch.replacements.attributes import replace_attributes

MAX_FRAMES = 1 << 20
"""The maximum number of frames for which a condition is evaluated."""


class DecidedConditions(NamedTuple):
    """Conditions on lengths that an export decides as the example does.

    lines  the author's lines with such conditions
    flips  the lines whose condition changes for all long inputs -> the first length at which it has changed
    """

    lines: list[str]
    flips: dict[str, int]


@contextlib.contextmanager
def record_branches(torch: Any) -> Generator[DecidedConditions]:
    """Within this context, list the author's lines that use a comparison of lengths as a condition.

    Assertions are left out, and comparisons that have one result for all lengths. Other threads are unaffected.
    """
    owner, lines, flips = OwnThread(), list[str](), dict[str, int]()
    known_true = import_module("torch.fx.experimental.symbolic_shapes").statically_known_true
    classes = (torch.SymBool, torch.SymInt)
    before = {kind: kind.__bool__ for kind in classes}

    def make_truth(symbolic_class: Any) -> Any:
        def truth(self: Any) -> bool:
            frame = sys._getframe(1)
            if owner.is_here and is_author(frame):
                condition = self if symbolic_class is torch.SymBool else self != 0
                if not known_true(condition) and not known_true(torch.sym_not(condition)):
                    path, number = frame.f_code.co_filename, frame.f_lineno
                    text = linecache.getline(path, number).strip()
                    line = f"{path.rpartition('/')[2]} line {number}{f' ({text})' if text else ''}"
                    if not text.startswith("assert"):
                        if line not in lines:
                            lines.append(line)
                        flip = find_flip(condition)
                        if flip is not None:
                            flips[line] = min(flip, flips.get(line, flip))
            return before[symbolic_class](self)

        return truth

    with contextlib.ExitStack() as stack:
        for kind in classes:
            stack.enter_context(replace_attributes(kind, __bool__=make_truth(kind)))
        yield DecidedConditions(lines, flips)


def find_flip(condition: Any) -> int | None:
    """Return the first length above the example's from which on a condition has changed.

    None if some long inputs have the example's result, or if it depends on several lengths.
    """
    expression, shapes = condition.node.expr, condition.node.shape_env
    symbols = list(getattr(expression, "free_symbols", ()))
    if len(symbols) != 1 or symbols[0] not in shapes.backed_var_to_val:
        return None
    shortest = int(shapes.backed_var_to_val[symbols[0]])

    def holds(frames: int) -> bool:
        return bool(expression.subs(symbols[0], frames))

    example = holds(shortest)
    if any(holds(MAX_FRAMES + offset) == example for offset in range(32)):
        return None
    longest = MAX_FRAMES
    while longest - shortest > 1:
        middle = (shortest + longest) // 2
        shortest, longest = (middle, longest) if holds(middle) == example else (shortest, middle)
    return longest
