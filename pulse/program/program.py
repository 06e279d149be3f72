"""Program: a compiled pulsed model that makes streams."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pulse.errors import InputError, LoadError, PulseError, WriteError
from pulse.interface import Interface
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State
from pulse.pulsify.stream_lengths import longest_stream
from pulse.rounding import Rounding
from pulse.support.naming import require_name
from pulse.support.wording import spell
from pulse.version import __version__

if TYPE_CHECKING:
    from pulse.program.backends.groups import PlacedNode
    from pulse.program.backends.implementations import ImplementationChoice
    from pulse.program.specialise.outcome import Specialisation
    from pulse.program.streams.lanes import Lanes
    from pulse.pulsify.network import PulsedNetwork

MAX_SPECIALISE_SECONDS, MAX_SPECIALISE_MEGABYTES = 30.0, 2.0
"""The default bounds of ``specialise``."""
_WRITER = "pickled by"


class Program(ABC):
    """A compiled pulsed model, ``network``: immutable, shared by all of its streams. One of a file has no model.

    Copying returns the program itself. It pickles without addresses, and is linked again when unpickled.
    """

    load: "ClassVar[Callable[[str | PathLike[str] | bytes], Program]]"
    """Return the program in a file that ``save`` wrote, or in bytes; ``pulse.program`` sets it to ``read_program``."""
    threads: int = 1
    """The number of threads that may share a step of a stream."""
    NOT_PICKLED: ClassVar[tuple[str, ...]] = ("choices",)
    """Attributes that are valid in this process only, or are computed again on demand."""

    def __init__(self, model: Interface, rounding: Rounding = Rounding()) -> None:
        self.model = model
        self.form = rounding.form
        """The form of stored weights: ``f32``, ``bf16`` or ``int8``."""
        self.activations = rounding.activation_form or "f32"
        """The form to which the operands of the weights are rounded, else ``f32``."""
        self.inputs = model.inputs
        self.outputs = model.outputs
        self.pulse = model.pulse
        self.limit = longest_stream(model.symbol, model.assumptions)
        """Maximum number of frames of the symbol; longer streams are refused; None: any number."""

    @property
    def helpers(self) -> tuple[int, ...]:
        """The native ids of the threads that share steps with the caller's thread; the first stream starts them."""
        return ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the attributes of ``NOT_PICKLED``."""
        kept = {name: value for name, value in vars(self).items() if name not in self.NOT_PICKLED}
        return {**kept, _WRITER: __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Raises LoadError: another version of pulse wrote it."""
        parts = dict(state)
        if (writer := parts.pop(_WRITER)) != __version__:
            raise LoadError(
                f"the program was pickled by pulse {writer}, and this is pulse {__version__}: compile the model here"
            )
        for name, value in parts.items():
            setattr(self, name, value)

    @property
    @abstractmethod
    def backend(self) -> str:
        """The name of what runs it: ``numba``, ``numpy``, or a runtime of a written file."""

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of model, pulse, backend, form of weights, layout of the state and version of pulse.

        Snapshots must match it.
        """
        return self._digest()

    def _digest(self) -> bytes:
        from pulse.program.digest import digest

        return digest(self.network, f"{__version__} {self.backend} {self.pulse} {self.form}")

    def steps(self, end: int) -> int:
        """Return how many pulses a stream of ``end`` frames of the symbol takes, its tail included."""
        symbol, pulses = self.model.symbol, -(-end // self.pulse)
        for port in self.outputs:
            if port.streams:
                total = max(0, port.length.eval({symbol: end}))
                pulses = max(pulses, -(-(port.delay + total) // port.frames) if total else 0)
        for wire in self.model.awaited_wires():
            pulses = max(pulses, -(-(wire.offset + max(0, wire.length.eval({symbol: end}))) // wire.frames))
        return pulses

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the program to a file that ``load`` reads: rows, weights, ports, metadata.

        Raises WriteError: the file cannot be written, or the program is one of the numpy backend
        """
        raise WriteError(
            f"{self.model.title}: only programs of the numba backend are saved; compile it with backend='numba'"
        )

    @property
    def network(self) -> "PulsedNetwork":
        """The model that it was compiled from. Raises LoadError: a program file does not contain it."""
        from pulse.pulsify.network import PulsedNetwork

        if isinstance(self.model, PulsedNetwork):
            return self.model
        raise self.no_model_error()

    def no_model_error(self) -> LoadError:
        """Return the error for calls that need the model of a program file."""
        return LoadError(
            f"{self.model.title}: is a program, whose file does not contain the model; give the model that it was "
            "compiled from"
        )

    @cached_property
    def choices(self) -> "Mapping[int, ImplementationChoice]":
        """The implementation of each node of ``network``. Raises LoadError as ``network``."""
        from pulse.program.backends.groups import choices_by_node

        return choices_by_node(self.network, self.backend)

    @property
    def nodes(self) -> "list[PlacedNode]":
        """The nodes of the pulsed graph, each with its implementation. Raises LoadError as ``network``."""
        from pulse.program.backends.groups import PlacedNode

        nodes = self.network.graph.nodes
        return [PlacedNode(nodes[i].name, nodes[i].op, choice) for i, choice in sorted(self.choices.items())]

    def node(self, name: str) -> "PlacedNode":
        """Return a node of the pulsed graph with its implementation. Raises PulseError: there is none."""
        nodes = {node.name: node for node in self.nodes}
        return nodes[require_name("node", name, nodes, PulseError, self.model.title)]

    def with_threads(self, threads: int) -> Self:
        """Return the same program with long steps shared among ``threads`` threads; the results are bit-identical.

        1 means the caller's thread alone. All streams of a process share the other threads, which wait for steps.

        Raises InputError: threads is below 1, or above the cores of the process, or above 1 on the numpy backend; lanes
        always run on one thread
        """
        if threads != 1:
            raise InputError(
                f"{spell('threads', threads)}: the {self.backend} backend runs on one thread; use the numba backend"
            )
        return self

    def specialise(
        self,
        seconds: float = MAX_SPECIALISE_SECONDS,
        megabytes: float = MAX_SPECIALISE_MEGABYTES,
        min_gain: float | None = None,
    ) -> "Specialisation":
        """Compile separate machine code for single rows, with their shapes as constants; the results are bit-identical.

        If the code makes a step ``min_gain`` times as fast, by default 1.1 times, all streams use it at once, running
        ones too: call this method in a separate thread while they run. The code is stored in the folder of compiled
        kernels. ``save`` of a program that was compiled in this process stores that it is specialised.

        seconds    processor time after which no further rows are compiled
        megabytes  machine code after which no further rows are compiled
        min_gain   the minimum speed-up of a step for which streams use the code, from 1; None: 1.1
        Raises     InputError: the numpy backend has no rows, or ``min_gain`` is below 1; CompileError: the code
                   cannot be compiled
        """
        raise InputError(f"the {self.backend} backend has no kernels to specialise; use the numba backend")

    @abstractmethod
    def spawn(self, constants: Feed | None = None) -> State:
        """Return a new stream. ``constants`` has the inputs that do not stream.

        Raises InputError: the names, shapes or types of ``constants`` do not match these inputs.
        """

    def spawn_many(self, count: int, constants: Feed | None = None) -> "Lanes":
        """Return ``count`` streams that step in one call and share ``constants``.

        Raises InputError: as ``spawn``; ``count`` is not positive, or the program runs on several threads.
        """
        from pulse.program.streams.lanes import Lanes, require_lane_count

        return Lanes(self, [self.spawn(constants) for _ in range(require_lane_count(count))])


def require_program(program: object) -> Program:
    """Return the program; raise PulseError, which says how to get one, for anything else."""
    if isinstance(program, Program):
        return program
    raise PulseError(f"expected a Program, got {type(program).__name__}; use model.pulsify(…).compile()")
