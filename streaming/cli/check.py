"""pulse check: the proof that a stream equals the offline model."""

from typing import Annotated

import typer

from streaming.cli import options
from streaming.cli.console import CHECK_FAILED, print_error, print_json, print_pairs, size, stdout


@options.takes_chunks
def check(
    model: options.ModelPath = None,
    pulse: options.Pulse = None,
    length: Annotated[
        list[int] | None,
        typer.Option(
            "--length",
            min=0,
            help="Frames to try. May be repeated; well chosen by default.",
            show_default=False,
        ),
    ] = None,
    symbol: options.SymbolName = None,
    rate: options.Rate = None,
    inputs: options.Inputs = None,
    max_context: options.MaxContext = None,
    backend: options.Backend = "numba",
    weights: options.Weights = "f32",
    json: options.AsJson = False,
    chunks: options.ChunkOptions = options.NO_CHUNKS,
) -> None:
    """Prove on random input that every streamed frame equals the offline one; else name the first bad wire.

    Tries streams shorter than a pulse, of whole pulses, of other lengths and long ones; the last pulse is
    padded with NaN, so that nothing can lean on it. Exit code 1 if any frame differs.
    A model that takes chunks and states is compared with a call for each chunk, the states handed on.
    The proof is of weights of f32. With --weights bf16 or int8 it tells as well what these change in the outputs.

    [bold]Examples[/bold]

      [cyan]pulse check model.onnx --pulse 160[/cyan]

      [cyan]pulse check model.onnx --pulse 160 --length 1 --length 48000[/cyan]
    """
    from pulse.accuracy import RoundingError, rounding_errors
    from pulse.oracle import oracle_of
    from pulse.program.weights import checked_form
    from pulse.proof import ATOL, RTOL, prove, verify
    from streaming.cli.model import compiling, open_model

    form = checked_form(weights)
    opened = open_model(model, symbol, inputs, rate, max_context, chunks, pulse)
    pulsed, prepare = opened.pulsed(pulse), compiling()
    if not opened.model.ready:
        report = verify(
            opened.typed,
            pulsed.pulse,
            opened.model.symbol,
            length or None,
            backend,
            max_context=max_context,
            prepare=prepare,
        )
    else:
        report = prove(pulsed, oracle_of(pulsed), length or None, backend, prepare=prepare)
    pulsed = report.model
    errors: list[RoundingError] = []
    if form != "f32":
        errors = rounding_errors(pulsed, form, max(report.lengths), backend, prepare=prepare)
    outputs = [port for port in pulsed.outputs if port.streams]
    state_bytes = sum(count for _, _, count in pulsed.buffers())
    if json:
        found = report.divergence
        print_json(
            {
                "model": opened.title,
                "equal": report.equal,
                "backends": list(report.backends),
                "pulse_frames": pulsed.pulse,
                "pulse_ms": opened.milliseconds(pulsed.pulse),
                "lengths": list(report.lengths),
                "skipped": list(report.skipped),
                "error": _finite(report.error),
                "rtol": RTOL,
                "atol": ATOL,
                "weights": form,
                "weight_errors": {
                    error.output: {"largest": _finite(error.largest), "snr_db": _finite(error.snr_db)}
                    for error in errors
                },
                "delays": [opened.delay(port, pulsed.pulse) for port in outputs],
                "receptive_fields": {
                    name: {"frames": field.frames, "ahead_frames": field.ahead}
                    for name, field in pulsed.fields.items()
                },
                "state_bytes": state_bytes,
                "divergence": None
                if found is None
                else {
                    "wire": found.wire,
                    "op": found.op,
                    "length": found.length,
                    "backend": found.backend,
                    "frame": found.frame,
                    "offline": _finite(found.offline),
                    "streamed": _finite(found.streamed),
                },
            }
        )
    else:
        pairs = [("model", f"{opened.title}, {' and '.join(report.backends)}"), ("rate", opened.rate_text())]
        pairs.append(("pulse", opened.pulse_text(pulsed.pulse)))
        pairs += opened.chunk_pairs(pulsed)
        pairs.append(("lengths", ", ".join(map(str, report.lengths))))
        if report.skipped:
            pairs.append(
                ("skipped", f"{', '.join(map(str, report.skipped))}: refused by the offline model too")
            )
        pairs += [(f"delay of {port.name}", opened.delay_text(port, pulsed.pulse)) for port in outputs]
        pairs += [(f"{name} sees", opened.receptive_text(field)) for name, field in pulsed.fields.items()]
        pairs.append(("state", size(state_bytes)))
        pairs.append(("error", f"{report.error:.3g} at most (allowed {RTOL:g} of the value + {ATOL:g})"))
        pairs += [(f"{error.output} in {form}", str(error)) for error in errors]
        print_pairs(pairs)
    if report.divergence is not None:
        print_error(str(report.divergence))
        raise typer.Exit(CHECK_FAILED)
    if not json:
        stdout().print("equal: every frame of every stream", style="bold green")


def _finite(value: float) -> float | str:
    """A number that JSON has, else its name."""
    return value if abs(value) < float("inf") else str(value)
