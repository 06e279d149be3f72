"""Nested loops over tensors: sizes, and the strides of each tensor."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from pulse.support.record import record


@record
class Loops:
    """Sizes, outermost first, and the strides of each tensor, one for each loop."""

    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @classmethod
    def over(cls, shape: Sequence[int], strides: Iterable[Sequence[int]], order: Sequence[int]) -> "Loops":
        """Return as few loops as possible over the axes of tensors, in ``order`` from the outermost."""
        columns = (tuple(steps[axis] for axis in order) for steps in strides)
        return cls(tuple(shape[axis] for axis in order), tuple(columns)).merge()

    def merge(self) -> "Loops":
        """Merge neighbouring loops if every tensor allows it, and drop loops of size 1."""
        sizes: list[int] = []
        strides: list[list[int]] = [[] for _ in self.strides]
        for axis, size in enumerate(self.sizes):
            steps = [tensor_strides[axis] for tensor_strides in self.strides]
            if size == 1:
                continue
            if sizes and all(
                tensor_strides[-1] == step * size for tensor_strides, step in zip(strides, steps)
            ):
                sizes[-1] *= size
                for tensor_strides, step in zip(strides, steps):
                    tensor_strides[-1] = step
                continue
            sizes.append(size)
            for tensor_strides, step in zip(strides, steps):
                tensor_strides.append(step)
        return Loops(tuple(sizes), tuple(map(tuple, strides)))

    def move_longest_inside(self) -> "Loops":
        """Move the longest of the outer loops next to the innermost one, which stays."""
        outer_count = len(self.sizes) - 1
        if outer_count < 2:
            return self
        longest = max(range(outer_count), key=lambda axis: (self.sizes[axis], axis))
        order = [*(axis for axis in range(outer_count) if axis != longest), longest, outer_count]
        strides = (tuple(steps[axis] for axis in order) for steps in self.strides)
        return Loops(tuple(self.sizes[axis] for axis in order), tuple(strides))

    def pad(self, count: int) -> "Loops":
        """Add outer loops of size 1 until there are at least ``count`` loops."""
        missing = max(0, count - len(self.sizes))
        return Loops((1,) * missing + self.sizes, tuple((0,) * missing + steps for steps in self.strides))

    def inner_loops(self, count: int) -> "Iterator[tuple[tuple[int, ...], Loops]]":
        """Yield the innermost loops for each iteration of the others, with the offset of each tensor.

        There are exactly ``count`` inner loops, padded by outer ones of size 1.
        """
        outer = max(0, len(self.sizes) - count)
        inner = Loops(self.sizes[outer:], tuple(steps[outer:] for steps in self.strides)).pad(count)
        for indices in product(*map(range, self.sizes[:outer])):
            yield tuple(sum(i * step for i, step in zip(indices, steps)) for steps in self.strides), inner
