"""The inputs and outputs of the model, as a program file stores them."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.errors import DimError, LoadError
from pulse.facts import DTYPES, MAX_AXES, dtype_name
from pulse.interface import AwaitedWire, Interface, Port, find_port
from pulse.program.file.json_object import JsonObject
from pulse.support.bounds import FAR_FRAMES, UNBOUNDED
from pulse.support.printable import is_title
from pulse.support.record import record
from pulse.support.wording import count_of

MAX_TAIL_PULSES = 1 << 20
"""Maximum number of pulses of a stream after its last frame; a file with more is refused."""
MAX_LETTERS, MAX_ASSUMPTIONS = 1 << 10, 16
"""The longest text of a dim, and the most assumptions about symbols; a file with more is refused."""
MAX_RATE = 1 << 31
"""The largest pulse, numerator or denominator of a rate; a file with a larger one is refused."""


@record
class StoredInterface:
    """The ``Interface`` of a program that was read from a file."""

    title: str
    symbol: Symbol
    pulse: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    assumptions: Sequence[TDim]
    awaited: tuple[AwaitedWire, ...]
    sizes: Mapping[str, int]
    chunks: Any

    def port(self, name: str) -> Port:
        """Return an input or output by its name. Raises PulsifyError: no port has it."""
        return find_port(self, name)

    def awaited_wires(self) -> tuple[AwaitedWire, ...]:
        """Return every wire for whose last frame some output waits."""
        return self.awaited


def write_interface(model: Interface) -> dict[str, Any]:
    """Return the interface as an object for JSON."""
    waits = [
        {"frames": wire.frames, "offset": wire.offset, "length": str(wire.length)}
        for wire in model.awaited_wires()
    ]
    return {
        "title": model.title if is_title(model.title) else "model",
        "symbol": model.symbol.name,
        "pulse": model.pulse,
        "inputs": [_write_port(port) for port in model.inputs],
        "outputs": [_write_port(port) for port in model.outputs],
        "assumptions": [str(assumption) for assumption in model.assumptions],
        "waits": waits,
        "sizes": dict(model.sizes),
    }


def _write_port(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "shape": list(port.shape),
        "dtype": dtype_name(port.dtype),
        "axis": port.axis,
        "delay": port.delay,
        "rate": [port.rate.numerator, port.rate.denominator],
        "length": str(port.length),
    }


def read_interface(record: JsonObject, chunks: Any) -> StoredInterface:
    """Read the interface; lengths are bounded, so that every stream ends. Raises LoadError: it is not valid."""
    try:
        scope = SymbolScope()
        symbol = scope.symbol(record.text("symbol", MAX_LETTERS))
        texts = record.texts("assumptions")
        if len(texts) > MAX_ASSUMPTIONS or sum(map(len, texts)) > MAX_LETTERS:
            raise LoadError(
                f"{record.name}: it has too many assumptions on {symbol}; compile the model again"
            )
        for text in texts:
            scope.assume(text)
        reading = _Reading(record.name, scope, symbol, record.number("pulse", 1, MAX_RATE))
        inputs = tuple(reading.read_port(port, True) for port in record.children("inputs"))
        outputs = tuple(reading.read_port(port, False) for port in record.children("outputs"))
        waits = tuple(map(reading.read_awaited, record.children("waits")))
    except DimError as error:
        raise LoadError(f"{record.name}: {error}; compile the model again") from None
    title = record.text("title")
    twice = any(len({port.name for port in ports}) < len(ports) for ports in (inputs, outputs))
    if twice or not is_title(title):
        raise LoadError(
            f"{record.name}: two of its inputs or outputs have one name, or its title does not fit into a file's name"
        )
    if not any(port.streams for port in inputs):
        raise LoadError(f"{record.name}: none of its inputs streams; compile the model again")
    sizes = record.mapping("sizes", int)
    return StoredInterface(
        title=title,
        symbol=symbol,
        pulse=reading.pulse,
        inputs=inputs,
        outputs=outputs,
        assumptions=scope.assumptions,
        awaited=waits,
        sizes=sizes,
        chunks=chunks,
    )


@record
class _Reading:
    """The reader of ports whose lengths are dims of one symbol. Its methods raise LoadError and DimError."""

    name: str
    scope: SymbolScope
    symbol: Symbol
    pulse: int

    def read_port(self, record: JsonObject, is_input: bool) -> Port:
        """Read an input or output."""
        name, shape = record.text("name"), record.numbers("shape", 0, 1 << 31)
        dtype = DTYPES.get(record.text("dtype", MAX_LETTERS))
        axis = record.optional_number("axis", len(shape) - 1)
        over, under = (*record.numbers("rate", 0, MAX_RATE), 0, 0)[:2]
        if dtype is None or under == 0 or len(shape) > MAX_AXES:
            raise LoadError(
                f"{self.name}: {name!r} has no valid type, shape or rate; compile the model again"
            )
        rate, length = Fraction(over, under), self.length(record)
        port = Port(name, shape, dtype, axis, record.number("delay", 0, FAR_FRAMES), rate, length)
        if port.streams:
            if port.frames < 1 or rate * self.pulse != port.frames:
                raise LoadError(
                    f"{self.name}: {name!r} has {count_of(port.frames, 'frame')} per pulse at rate {rate}"
                )
            self._check_bound(length, rate, port.frames, port.delay)
            if is_input and length.eval({self.symbol: FAR_FRAMES}) < rate * FAR_FRAMES - FAR_FRAMES // 2:
                raise LoadError(f"{self.name}: input {name!r} does not grow with the stream")
        elif is_input and axis is not None:
            raise LoadError(f"{self.name}: input {name!r} has frames but does not stream")
        return port

    def read_awaited(self, record: JsonObject) -> AwaitedWire:
        """Return a wire that an output waits for."""
        frames, length = record.number("frames", 1, MAX_RATE), self.length(record)
        offset = record.number("offset", -FAR_FRAMES, FAR_FRAMES)
        self._check_bound(length, Fraction(frames, self.pulse), frames, max(offset, 0))
        return AwaitedWire(frames, offset, length)

    def length(self, record: JsonObject) -> TDim:
        """Return a length of this symbol alone that fits into an int64 for every stream."""
        length = self.scope.parse(record.text("length", MAX_LETTERS))
        if not length.symbols <= {self.symbol}:
            raise LoadError(f"{self.name}: the length {length} does not depend on {self.symbol} alone")
        if (
            abs(length.eval({self.symbol: FAR_FRAMES})) > UNBOUNDED
            or abs(length.eval({self.symbol: 0})) > 1 << 60
        ):
            raise LoadError(f"{self.name}: the length {length} is too large; compile the model again")
        return length

    def _check_bound(self, length: TDim, rate: Fraction, frames: int, delay: int) -> None:
        """Refuse a wire whose tail takes too many pulses."""
        for end in (0, 1, FAR_FRAMES):
            if length.eval({self.symbol: end}) + delay > rate * end + MAX_TAIL_PULSES * frames:
                raise LoadError(
                    f"{self.name}: a stream would not end soon enough: {count_of(length, 'frame')}"
                )
