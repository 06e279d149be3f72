# pyright: basic
"""Python loops over frames in a module's code: an export runs some of their steps, and marks the frames.

``loop_scans.py`` makes one Scan of the steps.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pulse.torch.arguments import tensor_leaves
from pulse.torch.replacements.growing_frames import FirstFrames, GrowingFrames
from pulse.torch.replacements.loop_buffers import LoopBuffers, WrittenFrames
from pulse.torch.replacements.loop_indices import entries_of_axes, is_whole_axis, selected_axis, steps_of
from pulse.torch.replacements.loop_steps import (
    EXPORTED_STEPS,
    LOOP_DOMAIN,
    STEP_ATTRIBUTE,
    FrameLoop,
    LoopStep,
)

_FUNCTIONS_OF_COMPLEX_FRAMES = ("__getitem__", "select", "unbind", "split", "stack", "cat")


class LoopTracer:
    """The loops of an export."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._loops_by_size: dict[str, FrameLoop] = {}  # open loops over unbound frames
        self.buffers = LoopBuffers(torch)
        self._complex_as_pairs: dict[tuple[int, int], tuple[Any, Any]] = {}  # by id and version
        self._growing, self._first_frames = GrowingFrames(), FirstFrames()
        self._tails: dict[tuple[int, int, int, int], tuple[Any, Any]] = {}  # the slices for all steps
        self.all_loops: list[FrameLoop] = []
        self._finished_loops: set[int] = set()  # whose frames are joined

    @property
    def open_loops(self) -> list[FrameLoop]:
        """The loops whose frames are not joined."""
        return [loop for loop in self.all_loops if loop.loop_index not in self._finished_loops]

    def begin(self, frames: Any, first: int = 0) -> FrameLoop:
        """Begin a loop over this number of frames, from a position on, and return it."""
        loop = FrameLoop(len(self.all_loops), frames, author_place(), first)
        self.all_loops.append(loop)
        return loop

    def steps(self, frames: Any, first: int = 0) -> Sequence[int]:
        """Begin a loop; return the positions of its steps that are exported: all steps of a constant number."""
        if isinstance(frames, int):
            return range(first, first + frames)
        loop = self.begin(frames, first)
        return [LoopStep.of(loop, step) for step in range(EXPORTED_STEPS)]

    def step_index(self, frames: Any, index: int) -> int:
        """Return the index of a step that takes these frames: a ``LoopStep`` if they are the frames of that step."""
        loop_steps = {getattr(leaf, STEP_ATTRIBUTE, None) for leaf in tensor_leaves(self._torch, frames)}
        loop_step = loop_steps.pop() if len(loop_steps) == 1 else None
        if loop_step is None or loop_step[1] != index:
            return index
        return LoopStep.of(self.all_loops[loop_step[0]], index)

    def result(self, name: str, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the result of a function of PyTorch that selects or joins frames of a loop; None for other calls.

        Frames of complex tensors are pairs of real numbers on a last axis.
        """
        if self.all_loops:
            self.buffers.check_frames(self._torch.utils._pytree.tree_leaves((args, named)))
        if args and name in _FUNCTIONS_OF_COMPLEX_FRAMES and self._is_complex(args[0]):
            return self._complex_result(name, function, args, named)
        match name:
            case "__getitem__":
                return self._frame_at(*args)
            case "select" if len(args) == 3 and isinstance(args[2], LoopStep):
                return self._frame_of_step(args[0], args[1], args[2])
            case "__setitem__":
                return self._write(*args)
            case "unbind":
                return self._unbind(*args, **named)
            case "split":
                return self._split(*args, **named)
            case "stack" if self.all_loops:
                return self._join(name, *args, **named)
            case "cat" | "concat" if self.all_loops:
                grown = self._grow(*args, **named)
                return self._join("cat", *args, **named) if grown is None else grown
            case _:
                return None

    def check_call(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Note what a function that neither selects nor joins frames does to tensors to which a loop writes."""
        if self.all_loops:
            operands = self._torch.utils._pytree.tree_leaves((args, named))
            self.buffers.check_call(function, operands, args[0] if args else None)

    def _pairs(self, value: Any) -> Any:
        """Return a complex tensor as pairs: the same tensor in all steps."""
        key = id(value), value._version
        if key not in self._complex_as_pairs:
            self._complex_as_pairs[key] = value, self._torch.view_as_real(value)
        return self._complex_as_pairs[key][1]

    def _is_complex(self, value: Any) -> bool:
        tensors = value if isinstance(value, list | tuple) else [value]
        return any(self._torch.is_tensor(tensor) and tensor.is_complex() for tensor in tensors)

    def _complex_result(self, name: str, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the result for tensors of pairs as complex tensors; None if it is not of a loop."""
        first, *others = args
        torch, is_list = self._torch, isinstance(first, list | tuple)
        tensors = [tensor.to(torch.complex64) for tensor in first] if is_list else [first]
        real = [self._pairs(tensor) for tensor in tensors]
        for pair, tensor in zip(real, tensors):
            self.record([tensor], {}, pair)
        axes = {"unbind": 0, "stack": 0, "cat": 0, "split": 1}
        if name in axes:
            dim = named.pop("dim", others[axes[name]] if len(others) > axes[name] else 0)
            dim %= tensors[0].dim() + (name == "stack")
            others, named = [*others[: axes[name]], dim], {}
        elif name == "select":
            others[0] %= first.dim()
        elif isinstance(others[0], tuple) and ... in others[0]:
            place = others[0].index(...)
            whole = (slice(None),) * (first.dim() - len(entries_of_axes(others[0])) + 1)
            others = [(*others[0][:place], *whole, *others[0][place + 1 :])]
        result = self.result(name, function, (real if is_list else real[0], *others), named)
        if result is None:
            return None

        def as_complex(pair: Any) -> Any:
            value = torch.complex(pair[..., 0], pair[..., 1])
            self.record([pair], {}, value)
            return value

        return tuple(map(as_complex, result)) if isinstance(result, tuple) else as_complex(result)

    def record(self, args: Any, named: Any, result: Any) -> None:
        """Mark a result that depends on frames with the last of their steps."""
        if not self.all_loops:
            return
        leaves = self._torch.utils._pytree.tree_leaves
        loop_steps = [
            loop_step
            for operand in leaves((args, named))
            if (loop_step := getattr(operand, STEP_ATTRIBUTE, None)) is not None
        ]
        if loop_steps:
            for leaf in leaves(result):
                if self._torch.is_tensor(leaf):
                    setattr(leaf, STEP_ATTRIBUTE, max(loop_steps))

    def record_write(self, tensor: Any, _: Any, value: Any) -> None:
        """Mark a tensor to a part of which (the index between the two) a result that depends on frames is written."""
        self.record([tensor, value], {}, tensor)

    def _grow(self, tensors: Any, dim: int = 0, axis: int | None = None) -> Any:
        """Return ``cat([y, frame])`` of a step of a loop: after the last one all frames; None for other calls."""
        if len(tensors) != 2:
            return None
        (before, frame), dim = tensors, dim if axis is None else axis
        loop_step, previous = getattr(frame, STEP_ATTRIBUTE, None), getattr(before, STEP_ATTRIBUTE, None)
        if loop_step is None or (previous is not None and previous[0] != loop_step[0]):
            return None
        grown = self._growing.grow(before, frame, dim, loop_step[1], previous and previous[1])
        if grown is None:
            result = self._torch.cat([before, frame], dim)
            self.record([before, frame], {}, result)
            self._growing.keep_last(result, dim % frame.dim(), frame)
            return result
        result = self._join("cat", grown.frames, grown.axis) if len(grown.frames) == EXPORTED_STEPS else None
        if result is None:
            result = self._record_and_return(self._torch.cat([before, frame], dim), frame)
        elif grown.before is not None and 0 not in grown.before.shape:
            result = self._torch.cat([grown.before, result], dim)
        self._growing.keep(grown, result)
        return result

    def _last_grown(self, x: Any, entries: list[Any]) -> Any:
        """Return ``y[..., -1, …]`` or ``y[..., -1:, …]`` of a tensor to which a frame was joined; None for others."""
        last = self._growing.find_last(x)
        places = [place for place, entry in enumerate(entries) if not is_whole_axis(entry)]
        if last is None or len(places) != 1:
            return None
        (axis, frame), entry = last, entries[places[0]]
        is_last = isinstance(entry, int | slice) and entry in (-1, slice(-1, None))
        if not is_last or frame.shape[axis] != 1 or selected_axis(x, entries, places[0]) != axis:
            return None
        return frame if isinstance(entry, slice) else self._record_and_return(frame.squeeze(axis), frame)

    def _frame_at(self, x: Any, index: Any) -> Any:
        """Return ``x[..., step, …]``, and ``x[..., step : step + 1, …]``."""
        entries = list(index) if isinstance(index, tuple) else [index]
        if not any(self._torch.is_tensor(entry) for entry in entries):
            last = self._last_grown(x, entries)
            if last is not None:
                return last
        step_places = [place for place, entry in enumerate(entries) if steps_of(entry)]
        if len(step_places) != 1 or any(self._torch.is_tensor(entry) for entry in entries):
            return None
        (place,) = step_places
        axis = selected_axis(x, entries, place)
        if axis is None:
            return None
        frames = [self._frame_of_step(x, axis, step) for step in steps_of(entries[place])]
        if any(frame is None for frame in frames):
            return None
        frame = frames[-1]
        if isinstance(entries[place], slice):
            entries[place] = slice(None)
            frame = self._torch.stack(frames, axis)
            self.record(frames, {}, frame)
        else:
            del entries[place]
        if all(map(is_whole_axis, entries)):
            return frame
        return self._record_and_return(frame[tuple(entries)], frame)

    def _frame_of_step(self, x: Any, axis: int, step: LoopStep) -> Any:
        """Return the frame at the position of a step; None if x does not have a frame for each step."""
        axis %= x.dim()
        first = self._first_frames.find(x, axis, +step) if +step < step.loop.first else None
        if first is not None:
            return first
        frame = self._frame_before(x, axis, step)
        if frame is not None:
            self.buffers.keep_frame(x, step, frame)
        return frame

    def _frame_before(self, x: Any, axis: int, step: LoopStep) -> Any:
        """Return the frame at the position of a step, as the steps so far have left it; None for other tensors."""
        written = self.buffers.find(x, step.loop)
        if written is not None and written.axis == axis:
            position = +step
            if position in written.values:
                return written.values[position]
            if 0 <= position < written.first:
                return written.before.select(axis, position)
            x = written.before
        longer = self._frames_more(x, axis, step.loop)
        if longer is None or not 0 <= step.offset <= longer:
            return None
        tail = self._tail(x, axis, step.offset, step.offset - longer)
        return self._frame(step.loop, tail, axis, step.index)

    def _frames_more(self, x: Any, axis: int, loop: FrameLoop) -> int | None:
        """Return how many frames more a tensor has than a loop has steps; None if that depends on the length."""
        sizes = x.shape[axis], loop.frames
        if not all(isinstance(size, self._torch.SymInt) for size in sizes):
            return None
        hints = [size.node.hint for size in sizes]
        if None in hints:
            return None
        count = hints[0] - hints[1]
        return count if _is_known_true(sizes[0] == loop.frames + count) else None

    def _tail(self, x: Any, axis: int, first: int, end: int) -> Any:
        """Return x, or the one slice of it for all steps; ``end`` counts from the end, 0 is the end."""
        if not first and not end:
            return x
        key = id(x), axis, first, x._version
        if key not in self._tails:
            bounds = slice(first, end or None)
            self._tails[key] = x, x[(*(slice(None),) * axis, bounds)].clone()
        return self._tails[key][1]

    def _copy_with_tails(self, y: Any) -> Any:
        """Return a copy, of which steps take the same slices as those that the first step took before it wrote."""
        copy = y.clone()
        for (owner, axis, first, version), (_, tail) in list(self._tails.items()):
            if (owner, version) == (id(y), y._version):
                self._tails[id(copy), axis, first, copy._version] = copy, tail
        return copy

    def _record_and_return(self, result: Any, frame: Any) -> Any:
        self.record([frame], {}, result)
        return result

    def _frame(self, loop: FrameLoop, x: Any, axis: int, step: int) -> Any:
        axis %= x.dim()
        shape = [*x.shape[:axis], *x.shape[axis + 1 :]]
        attributes = {"axis": axis, "step": step, "loop": loop.loop_index}
        frame = self._torch.onnx.ops.symbolic(
            f"{LOOP_DOMAIN}::Frame", [x], attributes, dtype=x.dtype, shape=shape
        )
        setattr(frame, STEP_ATTRIBUTE, (loop.loop_index, step))
        return frame

    def _unbind(self, x: Any, dim: int = 0) -> Any:
        """Begin a loop over a tensor; return its frames, for ``unbind`` and ``for frame in x``."""
        frames: Any = x.shape[dim] if x.dim() else 0
        if not isinstance(frames, self._torch.SymInt) or _is_known_true(frames == frames.node.hint):
            return None
        loop = self._loops_by_size.setdefault(
            str(frames), FrameLoop(len(self.all_loops), frames, author_place())
        )
        if loop not in self.all_loops:
            self.all_loops.append(loop)
        return tuple(self._frame(loop, x, dim, step) for step in range(EXPORTED_STEPS))

    def _split(self, x: Any, size: Any, dim: int = 0) -> Any:
        """Begin a loop over a tensor; return its frames with their axis, for ``x.split(1, dim)``."""
        frames = self._unbind(x, dim) if type(size) is int and size == 1 else None
        return frames and tuple(self._record_and_return(frame.unsqueeze(dim), frame) for frame in frames)

    def _write(self, y: Any, index: Any, value: Any) -> Any:
        """Write ``y[..., step, …] = value``, where the other entries are whole axes; True if it is done."""
        entries = list(index) if isinstance(index, tuple) else [index]
        step_places = [place for place, entry in enumerate(entries) if isinstance(entry, LoopStep)]
        has_only_whole_axes = all(
            is_whole_axis(entry) for entry in entries if not isinstance(entry, LoopStep)
        )
        if not step_places:
            self._note_first_frame(y, entries, value)
        if len(step_places) != 1 or not has_only_whole_axes or not self._torch.is_tensor(value):
            return None
        axis = selected_axis(y, entries, step_places[0])
        step: LoopStep = entries[step_places[0]]
        loop = step.loop
        first = step.offset
        if axis is None or first < loop.first or self._frames_more(y, axis, loop) != first:
            return None
        value = value.to(y.dtype).expand([*y.shape[:axis], *y.shape[axis + 1 :]]).clone()
        written = self.buffers.find(y, loop)
        if written is None:
            before = self._copy_with_tails(y)
            later = self._tail(before, axis, first, 0)
            written = WrittenFrames(y, loop.loop_index, axis, first, before, later, y._version)
            self.buffers.begin(written)
        attributes = {"axis": axis, "step": step.index, "loop": loop.loop_index}
        written.later = self._torch.onnx.ops.symbolic(
            f"{LOOP_DOMAIN}::Store",
            [written.later, value],
            attributes,
            dtype=y.dtype,
            shape=list(written.later.shape),
        )
        setattr(value, STEP_ATTRIBUTE, (loop.loop_index, step.index))
        written.values[+step] = value
        self.buffers.replace_frame(y, step, value)
        if step.index == EXPORTED_STEPS - 1:
            y[(*(slice(None),) * axis, slice(first, None))] = written.later
            self.buffers.finish(written)
            self._end(loop)
        return True

    def _note_first_frame(self, y: Any, entries: list[Any], value: Any) -> None:
        """Remember ``y[..., n, …] = value`` for a loop that begins after frame n."""
        places = [place for place, entry in enumerate(entries) if type(entry) is int and entry >= 0]
        others = [entry for place, entry in enumerate(entries) if place not in places]
        if len(places) != 1 or not all(map(is_whole_axis, others)):
            return
        axis = selected_axis(y, entries, places[0])
        if (
            axis is not None
            and self._torch.is_tensor(value)
            and isinstance(y.shape[axis], self._torch.SymInt)
        ):
            frame = value.to(y.dtype).expand([*y.shape[:axis], *y.shape[axis + 1 :]])
            self._first_frames.write(y, axis, entries[places[0]], frame)

    def _end(self, loop: FrameLoop) -> None:
        """End the loop, whose frames are joined: those that are unbound from here on belong to another one."""
        self._finished_loops.add(loop.loop_index)
        self._loops_by_size = {
            size: other for size, other in self._loops_by_size.items() if other is not loop
        }

    def _join_parts(self, name: str, tensors: Any, dim: int) -> list[Any] | None:
        """Return one tensor of each step, if each has left several of one loop."""
        marks: list[Any] = [getattr(tensor, STEP_ATTRIBUTE, None) for tensor in tensors]
        count = len(tensors) // EXPORTED_STEPS
        if None in marks or marks != [
            (marks[0][0], step) for step in range(EXPORTED_STEPS) for _ in range(count)
        ]:
            return None
        parts = [tensors[count * step : count * (step + 1)] for step in range(EXPORTED_STEPS)]
        return [self._record_and_return(getattr(self._torch, name)(part, dim), part[0]) for part in parts]

    def _loop_of_results(self, tensors: Any) -> FrameLoop | None:
        """Return the loop whose steps have left these results, one each, in order; None if there is no such loop.

        The first one may come from elsewhere: a frame with the index 0, or the state before the first step, if each
        step leaves the state that it begins with.
        """
        marks: list[Any] = [getattr(tensor, STEP_ATTRIBUTE, None) for tensor in tensors]
        if None in marks[1:] or len({mark[0] for mark in marks if mark}) != 1:
            return None
        steps = [step for _, step in marks[1:]]
        of_own_steps = steps == list(range(1, EXPORTED_STEPS))
        if marks[0] is None:
            begins_apart = of_own_steps or steps == list(range(EXPORTED_STEPS - 1))
            if not begins_apart or not self._have_one_shape(*tensors[:2]):
                return None
        elif marks[0][1] or not of_own_steps:
            return None
        return self.all_loops[marks[1][0]]

    def _have_one_shape(self, left: Any, right: Any) -> bool:
        return len(left.shape) == len(right.shape) and all(
            _is_known_true(size == other) for size, other in zip(left.shape, right.shape)
        )

    def _join(self, name: str, tensors: Any, dim: int = 0, axis: int | None = None) -> Any:
        """Join the frames of all steps, if there is one of each, and others before them."""
        if not isinstance(tensors, list | tuple) or len(tensors) < EXPORTED_STEPS:
            return None
        dim = dim if axis is None else axis
        others = list(tensors[:-EXPORTED_STEPS])
        parts = self._join_parts(name, tensors, dim) if others else None
        if parts is not None:
            return self._join("cat", parts, dim)
        if others:
            joined = self._join(name, tensors[-EXPORTED_STEPS:], dim)
            join = getattr(self._torch, name)
            return joined if joined is None else self._torch.cat([join(others, dim), joined], dim)
        loop = self._loop_of_results(tensors)
        if loop is None:
            return None
        first = tensors[0]
        dim %= first.dim() + (name == "stack")
        shape = list(first.shape)
        if name == "stack":
            shape.insert(dim, loop.frames)
        else:
            shape[dim] = shape[dim] * loop.frames
        attributes = {"axis": dim, "loop": loop.loop_index, "new": int(name == "stack")}
        self._end(loop)
        return self._torch.onnx.ops.symbolic(
            f"{LOOP_DOMAIN}::Stack", list(tensors), attributes, dtype=first.dtype, shape=shape
        )


def author_place() -> str:
    """Return the file and the line of the innermost caller outside this package and of PyTorch."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in (
        "pulse",
        "torch",
    ):
        frame = frame.f_back
    return f"{frame.f_code.co_filename.rpartition('/')[2]} line {frame.f_lineno}"


def _is_known_true(condition: Any) -> bool:
    """Return whether a condition on sizes holds for every length."""
    return import_module("torch.fx.experimental.symbolic_shapes").statically_known_true(condition)
