"""The few calls that most users need."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pulse.errors import InputError
from pulse.loading import formats as formats  # registers them
from pulse.loading.load import load
from pulse.program.compiler import Prepare
from pulse.program.program import Program
from pulse.support.collector import fewer_collections
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
    """Load, analyse, declutter, pulsify and compile in one call.

    A model that its author made streaming, taking a chunk and states and giving new states, runs as it is, chunk by
    chunk.

    source       whatever ``pulse.load`` takes; its result, if more has to be said of the model
    pulse        frames of the symbol for each step; by default the smallest number possible
    align        delay the earlier outputs so that all belong to the same moment
    max_context  for attention to all frames before: the most frames of the symbol that a stream may have
    backend      ``numba``: compiled kernels; ``numpy``: the same ops in Python, slow, the reference; or the name of a
                 program of several backends, see ``pulse.program.backends``
    weights      how weights are stored: ``f32``, the default; ``bf16`` and ``int8`` are rounded, and take a half and a
                 quarter. What fits into 16 bits as it is takes a half in any case
    prepare      as in ``compile_model``: ``streaming.warming.compile_in_parallel()`` compiles in several processes
    threads      the number of threads that share a long step, see ``Program.with_threads``
    activations  ``int8``, with weights of ``int8``: what these are multiplied by is rounded too, row by row, and
                 products are sums of whole numbers: faster, and less exact; see ``pulse.accuracy``. Likewise
                 ``bf16`` with ``bf16``, which is faster with AVX512-BF16
    specialise   compile machine code for the shapes of this program, see ``Program.specialise``; takes seconds, once
    Raises       PulseError
    """
    with fewer_collections():
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

    source   as in ``stream``, or an ``nn.Module`` of PyTorch, which goes through ``from_torch``: its streams are
             compared with the module too. A model of chunks is compared with its author's loop, one in pulses with
             what it keeps of the model before
    pulse    as in ``stream``
    lengths  frames of the symbol to try; by default short ones, and long ones that fill all that the model remembers
    backend  the backend to prove, besides numpy
    max_context, prepare  as in ``stream``
    seed     the seed of the random inputs
    long     try longer streams, and every signal on them, whatever it takes
    example  of a module: what its ``forward`` takes
    twin     of a module: its author's own streaming, a new stream. It is called with a pulse of each input, a tensor,
             and gives the frames that are ready; joined, they must be the module's first ones
    dynamic, states, method  of a module, as in ``from_torch``. A module with states is called chunk by chunk
    Raises   PulseError if the model cannot be streamed at all; as ``from_torch`` of a module; DivergenceError: the twin
             differs
    """
    from pulse.loading.proving import prove_loaded

    if is_module(source):
        from pulse.torch.proof import prove_module

        return prove_module(
            module=source,
            example=example,
            twin=twin,
            pulse=pulse,
            lengths=lengths,
            backend=backend,
            max_context=max_context,
            prepare=prepare,
            seed=seed,
            long=long,
            dynamic=dynamic,
            states=states,
            method=method or "forward",
        )
    if any(argument is not None for argument in (example, twin, dynamic, states, method)):
        raise InputError(
            "example, twin, dynamic, states and method are for a PyTorch module, which the source is not"
        )
    model = load(source).with_pulse(pulse)
    return prove_loaded(
        model, model.pulsify(pulse, max_context=max_context), lengths, backend, seed, prepare, long
    )
