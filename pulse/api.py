"""The few calls that most users need."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pulse import formats as formats  # registers them
from pulse.errors import InputError
from pulse.loading.load import load
from pulse.program.backends.registry import Prepare
from pulse.program.program import Program
from pulse.support.torch_modules import is_module

if TYPE_CHECKING:
    from pulse.loading.load import Loadable
    from pulse.proof import ProofReport

__all__ = ["load", "stream", "verify"]


def stream(
    source: "Loadable",
    pulse: int | None = None,
    *,
    align: bool = False,
    max_context: int | None = None,
    backend: str = "numba",
    weights: str | None = None,
    prepare: Prepare | None = None,
    threads: int = 1,
    activations: str | None = None,
    specialise: bool = False,
) -> Program:
    """Load a model and compile it to a program for streams, in one call.

    Most models are offline: pulse derives their streaming form. A model that already streams, with its states among its
    inputs and outputs, runs unchanged, chunk by chunk.

    source       a path, a model or anything else that ``pulse.load`` accepts. Call ``pulse.load`` first and pass its
                 result here if the model needs options, such as the shapes of its inputs
    pulse        the number of frames in each step; by default the smallest possible one. Frames are counted on the
                 symbol, the time axis of the inputs
    align        delay the earlier outputs, so that the frames of all outputs in a step belong to the same moment
    max_context  the most frames that a stream may have; needed for attention to all earlier frames
    backend      ``numba`` runs compiled kernels. ``numpy`` runs the same ops in Python: it is slow, and is the
                 reference. For programs of several backends, see ``pulse.program.backends``
    weights      how weights are stored: ``f32`` by default. ``bf16`` rounds them and halves their memory; ``int8``
                 rounds them and takes a quarter. Weights that 16 bits hold exactly always take half
    prepare      how kernels are compiled before the first step, as in ``compile_model``:
                 ``streaming.compilation.warming.compile_in_parallel()`` compiles in several processes
    threads      the number of threads that share a long step, see ``Program.with_threads``
    activations  how the values that are multiplied by weights are rounded; by default not at all. ``int8`` needs
                 ``int8`` weights, and rounds row by row. ``bf16`` needs ``bf16`` weights, and is faster on processors
                 with AVX512-BF16. Both are less exact; ``pulse.accuracy`` measures the error
    specialise   compile machine code for the shapes of this program, see ``Program.specialise``; takes a few seconds
    Raises       PulseError: the model cannot be read, cannot stream, or cannot be compiled
    """
    program = load(source).compile(
        pulse,
        align=align,
        max_context=max_context,
        backend=backend,
        weights=weights,
        prepare=prepare,
        activations=activations,
    )
    if specialise:
        program.specialise()
    return program.with_threads(threads)


def verify(
    source: "Loadable",
    pulse: int | None = None,
    *,
    lengths: Sequence[int] | None = None,
    backend: str = "numba",
    max_context: int | None = None,
    prepare: Prepare | None = None,
    seed: int = 0,
    long: bool = False,
    example: Any = None,
    twin: Callable[..., Any] | None = None,
    dynamic: Mapping[Any, Mapping[int, str]] | None = None,
    states: Mapping[str, Any] | None = None,
    method: str | None = None,
) -> "ProofReport":
    """Prove on random input that the stream equals the offline model, or name the first wire that diverges.

    A model that is called chunk by chunk is compared with the loop over its calls. A pulsed model is compared with
    the offline model that it keeps.

    source       see ``stream``; or a PyTorch ``nn.Module``. ``from_torch`` converts a module, and its streams are
                 compared with the module too
    pulse        see ``stream``
    lengths      the lengths of the streams, in frames; by default short ones, and long ones that fill every buffer
    backend      the backend to prove; numpy is always proved
    max_context, prepare  see ``stream``
    seed         the seed of the random inputs
    long         try longer streams, and every signal on them, however long that takes
    example      for a module: the arguments of its ``forward``
    twin         for a module: a new stream of the author's own streaming code. It is called with a tensor, the next
                 pulse, for each input, and returns the frames that are ready. Joined, these must equal the module's
                 first frames
    dynamic, states, method  for a module: see ``from_torch``. A module with states is called chunk by chunk
    Raises       PulseError: the model cannot stream, or as ``from_torch``; DivergenceError: the twin differs
    """
    from pulse.loading.proving import prove_model
    from pulse.proof import ProofChoice

    if is_module(source):
        if example is None:
            raise InputError(
                f"the proof of {type(source).__name__}, a module, needs an input of it: verify(module, example=x)"
            )
        from pulse.torch import load_module

        keywords = {"dynamic": dynamic, "states": states, "method": method or "forward"}
        model = load_module(source, example, keywords)
    elif any(argument is not None for argument in (example, twin, dynamic, states, method)):
        raise InputError(
            "example, twin, dynamic, states and method are for a PyTorch module, which the source is not"
        )
    else:
        model = load(source)
    model = model.with_pulse(pulse)
    pulsed = model.pulsify(pulse, max_context=max_context)
    if twin is not None:
        from pulse.torch.twin import require_twin

        require_twin(model, pulsed, twin, seed)
    return prove_model(model, pulsed, ProofChoice(lengths, seed, long), backend, prepare)
