"""pulse warm: compile all kernels now, so that no first run waits for them."""

import time
from typing import Annotated

import typer

from streaming.cli import options
from streaming.cli.console import duration, print_json, print_pairs
from streaming.progress import progress

DEAREST = 5


def warm(
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Processes at once; one for each core by default."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="KERNEL", help="Just this one. May be repeated.", show_default=False),
    ] = None,
    json: options.AsJson = False,
) -> None:
    """Compile every kernel for this processor and keep it; what is there already is left alone.

    Kernels are compiled at their first use otherwise. Run it after an installation or an update, or while an image is
    built. They are kept in the user's cache folder, or in the folder that PULSE_CACHE names. Nobody else may be able to
    write there, unless PULSE_CACHE_SHARED is 1.
    """
    started = time.perf_counter()
    from streaming.warming import warm as compile_ahead

    with progress("compiling kernels") as advance:
        found = compile_ahead(only or None, jobs, advance)
    seconds = time.perf_counter() - started
    if json:
        print_json(
            {
                "folder": str(found.folder),
                "compiled_s": found.compiled,
                "present": list(found.present),
                "jobs": found.jobs,
                "seconds": seconds,
            }
        )
        return
    pairs = [("folder", str(found.folder)), ("there before", str(len(found.present)))]
    dearest = [f"{name} {duration(took_s)}" for name, took_s in list(found.compiled.items())[:DEAREST]]
    text = str(len(found.compiled)) + (f" by {found.jobs} processes: {', '.join(dearest)}" if dearest else "")
    if len(found.compiled) > DEAREST:
        text += " …"
    print_pairs([*pairs, ("compiled", text), ("time", duration(seconds))])
