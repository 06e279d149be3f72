# pyright: basic
"""Conditions on lengths in a module's code, which an export decides as the example does."""

import contextlib
import linecache
import sys
from collections.abc import Generator
from importlib import import_module
from typing import Any

from pulse.torch.advice import is_author
from pulse.torch.own_thread import OwnThread
from pulse.torch.replacements.attributes import replace_attributes


@contextlib.contextmanager
def record_branches(torch: Any) -> Generator[list[str]]:
    """Within this context, list the author's lines that use a comparison of lengths as a condition.

    Assertions are left out, and comparisons that have one result for all lengths. Other threads are unaffected.
    """
    owner, lines = OwnThread(), list[str]()
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
                    if line not in lines and not text.startswith("assert"):
                        lines.append(line)
            return before[symbolic_class](self)

        return truth

    with contextlib.ExitStack() as stack:
        for kind in classes:
            stack.enter_context(replace_attributes(kind, __bool__=make_truth(kind)))
        yield lines
