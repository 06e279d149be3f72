"""pulse warm: compile all kernels now, so that no first run waits for them."""

from streaming.cli.options import ReportOptions, option, takes_groups
from streaming.terminal.progress import progress


@takes_groups
def warm(
    jobs: int | None = option(
        "Number of processes. Default: one per core.", "--jobs", "-j", metavar="N", min=1
    ),
    only: list[str] | None = option("Compile only this kernel. May be repeated.", metavar="KERNEL"),
    *,
    report_options: ReportOptions,
) -> None:
    """Compile every kernel for this processor and store it; kernels that are stored already are not compiled again.

    Otherwise kernels are compiled at their first use. Run it after an installation or an update, or while you build an
    image. Kernels are stored in the user's cache folder, or in the folder that PULSE_CACHE names. Only you may be
    able to write there, unless PULSE_CACHE_SHARED is 1.
    """
    from streaming.compilation.warming import warm as compile_ahead

    with progress("compiling kernels") as advance:
        result = compile_ahead(only or None, jobs, advance)
    report_options.print(result)
