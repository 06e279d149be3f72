"""The command line, ``pulse``: a file in ``commands`` for each command. Nothing heavy is imported before one runs."""

import gc

from pulse.support.collector import collect_rarely


def main() -> None:
    """Run the command ``pulse``."""
    collect_rarely()  # before the imports, whose objects nearly all stay alive
    from streaming.cli.commands import app
    from streaming.cli.signals import end_on_signals
    from streaming.cli.standard_output import show_any_name

    end_on_signals()
    show_any_name()
    try:
        app()
    finally:
        gc.freeze()  # else the interpreter traverses all objects once more before it exits
