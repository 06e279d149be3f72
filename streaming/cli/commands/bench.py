"""pulse bench: measure the time of a step and its parts."""

from pulse.support.wording import count_of
from streaming.cli import options
from streaming.cli.options import ModelOptions, ProgramOptions, ReportOptions, option, takes_groups
from streaming.terminal.progress import progress


@takes_groups
def bench(
    model: options.ModelPath = None,
    *,
    model_options: ModelOptions,
    steps: int = option("Number of steps in each round.", metavar="N", default=1000, min=1),
    rounds: int = option("Number of rounds; each starts a new stream.", metavar="N", default=3, min=1),
    program_options: ProgramOptions,
    details: bool = option("Report the cost of each node and instruction too.", "--profile", default=False),
    report_options: ReportOptions,
) -> None:
    """Measure the latency of every step on noise: percentiles, a histogram, and the cost of each kind of op.

    Examples:
      pulse bench                                       the built-in model
      pulse bench model.onnx --pulse 160 --rate 48000   with the deadline at this rate
      pulse bench model.onnx --threads 2                long steps on two cores
      pulse bench model.onnx --profile                  with every node and instruction
    """
    from streaming.cli.model_opening import compile_opened, open_model
    from streaming.reports.benchmark import measure_steps

    opened = open_model(model, model_options)
    program = compile_opened(opened, program_options)
    with progress(f"{count_of(rounds, 'round')} of {count_of(steps, 'step')}") as advance:
        benchmark = measure_steps(opened, program, steps, rounds, details, advance)
    report_options.print(benchmark)
