"""The command line, ``pulse``: a file in ``commands`` for each command. Nothing heavy is imported before one runs."""

import gc


def main() -> None:
    """Run the command ``pulse``."""
    from streaming.cli.signals import end_on_signals

    end_on_signals()  # first, as the imports take long enough for Ctrl-C
    from pulse.support.collector import collect_rarely

    collect_rarely()  # before the imports, whose objects nearly all stay alive
    from streaming.cli.commands import app
    from streaming.cli.standard_output import replace_closed_outputs, show_any_name

    replace_closed_outputs()
    show_any_name()
    try:
        app()
    finally:
        gc.freeze()  # else the interpreter traverses all objects once more before it exits
