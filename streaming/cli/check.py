"""pulse check: the proof that a stream equals the offline model."""

from streaming.cli import options
from streaming.cli.console import print_json, print_pairs, size
from streaming.cli.proof import USUAL, ProofOptions, end_with, proof_dict, proof_lines, timed


@options.takes(proof=ProofOptions, chunks=options.ChunkOptions)
def check(
    model: options.ModelPath = None,
    pulse: options.Pulse = None,
    symbol: options.SymbolName = None,
    rate: options.Rate = None,
    inputs: options.Inputs = None,
    max_context: options.MaxContext = None,
    backend: options.Backend = "numba",
    weights: options.Weights = "f32",
    json: options.AsJson = False,
    proof: ProofOptions = USUAL,
    chunks: options.ChunkOptions = options.NO_CHUNKS,
) -> None:
    """Prove on random input that every streamed frame equals the offline one; else name the first bad wire.

    Tries streams shorter than a pulse, of whole pulses, of other lengths, and long ones that fill all that the model
    remembers; noise, quiet and loud, held levels, bursts between zeros, and silence. The last pulse is padded with NaN,
    so that nothing can lean on it. What is allowed to differ follows from the rounding of the model's own arithmetic.
    A model that takes chunks and states is compared with a call for each chunk, the states handed on.
    The proof is of weights of f32. With --weights bf16 or int8 it tells as well what these change in the outputs.

    Exit code 1 if any frame differs, 3 if nothing was proved of some output: it is always the same, or never a number.

    [bold]Examples[/bold]

      [cyan]pulse check model.onnx --pulse 160[/cyan]

      [cyan]pulse check model.onnx --pulse 160 --length 1 --length 48000[/cyan]

      [cyan]pulse check model.onnx --long --seed 7[/cyan]
    """
    from pulse.accuracy import RoundingError, rounding_errors
    from pulse.loading.proving import prove_loaded
    from pulse.program.weights import checked_form
    from pulse.proof.report import json_number
    from streaming.cli.model import compiling, open_model

    form = checked_form(weights)
    opened = open_model(model, symbol, inputs, rate, max_context, chunks, pulse)
    pulsed, prepare = opened.pulsed(pulse), compiling()
    with timed() as spent:
        report = prove_loaded(
            opened.model, pulsed, proof.length or None, backend, proof.seed, prepare, proof.long
        )
    errors: list[RoundingError] = []
    if form != "f32":
        errors = rounding_errors(pulsed, form, report.lengths[-1], backend, proof.seed, prepare)
    outputs = [port for port in pulsed.outputs if port.streams]
    state_bytes = sum(count for _, _, count in pulsed.buffers())
    if json:
        print_json(
            {
                "model": opened.title,
                "pulse_frames": pulsed.pulse,
                "pulse_ms": opened.milliseconds(pulsed.pulse),
                "sizes": dict(pulsed.sizes),
                "delays": [opened.delay(port, pulsed.pulse) for port in outputs],
                "receptive_fields": {
                    name: {"frames": field.frames, "ahead_frames": field.ahead}
                    for name, field in pulsed.fields.items()
                },
                "state_bytes": state_bytes,
                "proof": proof_dict(report, spent),
                "weights": form,
                "weight_errors": {
                    error.output: {"largest": json_number(error.largest), "snr_db": json_number(error.snr_db)}
                    for error in errors
                },
            }
        )
    else:
        pairs = [("model", opened.title), ("rate", opened.rate_text())]
        pairs.append(("pulse", opened.pulse_text(pulsed.pulse)))
        pairs += opened.model.detected()
        pairs += [(f"delay of {port.name}", opened.delay_text(port, pulsed.pulse)) for port in outputs]
        pairs += [(f"{name} sees", opened.receptive_text(field)) for name, field in pulsed.fields.items()]
        pairs.append(("state", size(state_bytes)))
        pairs += proof_lines(report, spent)
        pairs += [(f"{error.output} in {form}", str(error)) for error in errors]
        print_pairs(pairs)
    end_with(report, json)
