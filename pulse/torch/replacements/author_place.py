"""The place in a module's code that calls a function during an export."""

import inspect


def author_place() -> str:
    """Return the file and the line of the innermost caller outside this package and of PyTorch."""
    frame = inspect.currentframe()
    assert frame is not None  # CPython has frames
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in (
        "pulse",
        "torch",
    ):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('/')[2]} line {frame.f_lineno}"
