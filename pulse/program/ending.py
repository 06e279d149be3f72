"""Where a stream ends, told by how many frames its inputs have."""

from collections.abc import Mapping, Sequence

from pulse.dim import Symbol, TDim
from pulse.errors import InputError
from pulse.pulsify.model import Port


def stream_end(ports: Sequence[Port], totals: Mapping[str, int], symbol: Symbol) -> int:
    """The frames of the symbol in a stream whose inputs have that many frames, the fewest possible.

    Raises InputError: no length of the stream gives all of these.
    """
    first = max(_reaching(port.length, totals[port.name], symbol) for port in ports)
    last = min(_reaching(port.length, totals[port.name] + 1, symbol) - 1 for port in ports)
    if first > last:
        told = ", ".join(f"{port.name} with {totals[port.name]} of {port.length}" for port in ports)
        raise InputError(
            f"the inputs end at different moments: {told} frames; feed the rest of the shorter one"
        )
    return first


def _reaching(length: TDim, frames: int, symbol: Symbol) -> int:
    """The least value of the symbol at which a growing length has at least that many frames."""
    high = 1
    while length.eval({symbol: high}) < frames:
        high *= 2
    low = 0
    while low < high:
        middle = (low + high) // 2
        if length.eval({symbol: middle}) < frames:
            low = middle + 1
        else:
            high = middle
    return low
