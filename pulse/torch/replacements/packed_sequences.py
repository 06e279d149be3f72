"""Packed sequences of full length: a stream has no padding, so all frames are there."""

from importlib import import_module
from typing import Any


class FullSizes:
    """The batch sizes of a packed sequence in which every sequence has all frames: data [frames * batch, ...].

    lengths  the lengths of the sequences, as the author passed them
    """

    def __init__(self, torch: Any, frames: Any, batch: int, lengths: Any) -> None:
        self.frames, self.batch, self.lengths = frames, batch, lengths
        self.device = torch.device("cpu")

    def __getitem__(self, step: int) -> int:
        return self.batch

    def size(self, axis: int = 0) -> Any:
        """Return the number of steps."""
        return self.frames

    def unpack(self, data: Any) -> Any:
        """Convert packed data to frames [frames, batch, ...]."""
        return data.unflatten(0, (self.frames, self.batch))


def pack_full(torch: Any, x: Any, lengths: Any, batch_first: bool) -> tuple[Any, FullSizes] | None:
    """Return the packed data of sequences whose lengths are proved to be all frames, or None."""
    frames, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    known_true = import_module("torch.fx.experimental.symbolic_shapes").statically_known_true
    ends = (lengths.min().item(), lengths.max().item())
    if type(batch) is not int or not all(known_true(length == frames) for length in ends):
        return None
    data = x.transpose(0, 1) if batch_first else x
    return data.flatten(0, 1), FullSizes(torch, frames, batch, lengths)


def pad_full(data: Any, sizes: FullSizes, batch_first: bool, fill: float, frames: Any) -> tuple[Any, Any]:
    """Return the frames of packed data, with ``fill`` up to ``frames``, and their lengths."""
    torch = import_module("torch")
    x = sizes.unpack(data)
    missing = frames - sizes.frames
    if not import_module("torch.fx.experimental.symbolic_shapes").statically_known_true(missing == 0):
        x = torch.cat([x, x.new_full((missing, *x.shape[1:]), fill)])
    return (x.transpose(0, 1) if batch_first else x), sizes.lengths.clone()
