# pyright: basic
"""Python loops over frames in a module's code: an export runs some of their steps, and marks the frames.

``loop_scans.py`` makes one Scan of the steps.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from pulse.errors import LoadError
from pulse.torch.arguments import tensor_leaves
from pulse.torch.replacements.author_place import author_place
from pulse.torch.replacements.complex_frames import ComplexFrames
from pulse.torch.replacements.growing_frames import FirstFrames, GrowingFrames
from pulse.torch.replacements.loop_buffers import LoopBuffers, WrittenFrames
from pulse.torch.replacements.loop_frames import StepFrames, is_known_true
from pulse.torch.replacements.loop_indices import is_whole_axis, selected_axis, steps_of
from pulse.torch.replacements.loop_steps import (
    EXPORTED_STEPS,
    LOOP_DOMAIN,
    STEP_ATTRIBUTE,
    FrameLoop,
    LoopStep,
)

MAX_SINGLE_FRAMES = 16
"""The widest window whose frames a step takes one by one; a wider one is a frame of a tensor of windows."""


class LoopTracer:
    """The loops of an export."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._loops_by_size: dict[str, FrameLoop] = {}  # open loops over unbound frames
        self.buffers = LoopBuffers(torch)
        self._complex = ComplexFrames(torch)
        self._growing, self._first_frames = GrowingFrames(), FirstFrames()
        self._step_frames = StepFrames(torch)
        self.all_loops: list[FrameLoop] = []
        self._finished_loops: set[int] = set()  # whose frames are joined

    @property
    def open_loops(self) -> list[FrameLoop]:
        """The loops whose frames are not joined."""
        return [loop for loop in self.all_loops if loop.loop_index not in self._finished_loops]

    def begin(self, frames: Any, first: int = 0, step: int = 1, stop: Any = None) -> FrameLoop:
        """Begin a loop over this number of frames, from a position on, and return it."""
        stop = frames if stop is None else stop
        loop = FrameLoop(
            len(self.all_loops), frames, author_place(), self.buffers.failures, first, step, stop
        )
        self.all_loops.append(loop)
        return loop

    def steps(self, frames: Any) -> Sequence[Any]:
        """Begin a loop; return the positions of its steps that are exported: all steps of a constant number."""
        return range(frames) if isinstance(frames, int) else self.steps_to(frames)

    def steps_to(self, stop: Any, first: int = 0, step: int = 1) -> Sequence[LoopStep]:
        """Begin a loop over the positions before a size; return those of its steps that are exported."""
        count = stop - first if first else stop
        frames = count if step == 1 else (count - 1) // step + 1
        if step > 1 and is_known_true(count % step == 0):
            frames = count // step
        loop = self.begin(frames, first, step, stop)
        return [LoopStep.of(loop, index) for index in range(EXPORTED_STEPS)]

    def step_index(self, frames: Any, index: int) -> Any:
        """Return the index of a step that takes these frames: a ``LoopStep`` if they are the frames of that step."""
        if isinstance(frames, LoopStep):
            return LoopStep.of(frames.loop, frames.index, index, 1)
        loop_steps = {getattr(leaf, STEP_ATTRIBUTE, None) for leaf in tensor_leaves(self._torch, frames)}
        loop_step = loop_steps.pop() if len(loop_steps) == 1 else None
        if loop_step is None or loop_step[1] != index:
            return index
        return LoopStep.of(self.all_loops[loop_step[0]], index, index, 1)

    def result(self, name: str, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the result of a function of PyTorch that selects or joins frames of a loop; None for other calls.

        Frames of complex tensors are pairs of real numbers on a last axis.
        """
        if self.all_loops:
            self.buffers.check_frames(self._torch.utils._pytree.tree_leaves((args, named)))
        if self._complex.concerns(name, args):
            return self._complex.result(partial(self.result, name, function), self.record, name, args, named)
        match name:
            case "__getitem__":
                return self._frame_at(*args)
            case "select" if len(args) == 3 and isinstance(args[2], LoopStep):
                return self._frame_of_step(args[0], args[1], args[2])
            case "__setitem__":
                return self._write(*args)
            case "unbind":
                return self._unbind(*args, **named)
            case "split" | "chunk":
                return (self._split if name == "split" else self._chunk)(*args, **named)
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
        steps = steps_of(entries[place])
        frame = self._window(x, axis, steps) if isinstance(entries[place], slice) else None
        if frame is None:
            frames = [self._frame_of_step(x, axis, step) for step in steps]
            if any(frame is None for frame in frames):
                return None
            frame = frames[-1]
            if isinstance(entries[place], slice):
                frame = self._torch.stack(frames, axis)
                self.record(frames, {}, frame)
        if isinstance(entries[place], slice):
            entries[place] = slice(None)
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
        if written is not None and (written.parts or step.rate != 1):
            return None
        if written is not None and written.axis == axis:
            position = +step
            if position in written.values:
                return written.values[position]
            if 0 <= position < written.first:
                return written.before.select(axis, position)
            x = written.before
        frames = self._step_frames.single_frames(x, axis, step)
        return None if frames is None else self._frame(step.loop, frames, axis, step.index)

    def _window(self, x: Any, axis: int, steps: Sequence[LoopStep]) -> Any:
        """Return ``x[..., t : t + width, …]`` as one frame; None for narrow windows that steps one frame apart take.

        These are single frames, some of which the loop may have written.
        """
        first = steps[0]
        if (first.rate == 1 and len(steps) <= MAX_SINGLE_FRAMES) or self.buffers.find(
            x, first.loop
        ) is not None:
            return None
        axis %= x.dim()
        windows = self._step_frames.windows(x, axis, first, len(steps))
        if windows is None:
            return None
        frame = self._frame(first.loop, windows, axis, first.index)
        frame = self._record_and_return(frame.movedim(-1, axis), frame)
        self.buffers.keep_frame(x, first, frame)
        return frame

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
        if not isinstance(frames, self._torch.SymInt) or is_known_true(frames == frames.node.hint):
            return None
        loop = self._loop_over(frames)
        return tuple(self._frame(loop, x, dim, step) for step in range(EXPORTED_STEPS))

    def _loop_over(self, frames: Any) -> FrameLoop:
        """Return the loop over this number of unbound frames, which may be of several tensors; begin one if none is."""
        if str(frames) not in self._loops_by_size:
            self._loops_by_size[str(frames)] = self.begin(frames)
        return self._loops_by_size[str(frames)]

    def _split(
        self, x: Any, split_size: Any = None, dim: int = 0, *, split_size_or_sections: Any = None
    ) -> Any:
        """Begin a loop over a tensor; return its parts of this many frames, for ``x.split(4, dim)``."""
        size = split_size_or_sections if split_size is None else split_size
        if type(size) is not int or not isinstance(x.shape[dim], self._torch.SymInt):
            return None
        if size == 1:
            frames = self._unbind(x, dim)
            return frames and tuple(self._record_and_return(frame.unsqueeze(dim), frame) for frame in frames)
        if is_known_true(x.shape[dim] == x.shape[dim].node.hint):
            return None
        count, dim = x.shape[dim], dim % x.dim()
        loop = self._loop_over(count // size if is_known_true(count % size == 0) else (count - 1) // size + 1)
        windows = self._step_frames.windows(x, dim, LoopStep.of(loop, 0, 0, size), size)
        if windows is None:
            raise LoadError(loop.refusal(loop.failures[loop.loop_index]))
        frames = [self._frame(loop, windows, dim, step) for step in range(EXPORTED_STEPS)]
        return tuple(self._record_and_return(frame.movedim(-1, dim), frame) for frame in frames)

    def _chunk(self, x: Any, chunks: Any, dim: int = 0) -> Any:
        """Return ``x.chunk(count, dim)`` as a split, if each part has the same number of frames for every length."""
        size = x.shape[dim]
        if not isinstance(chunks, self._torch.SymInt) or not isinstance(size, self._torch.SymInt):
            return None
        width = size.node.hint // max(chunks.node.hint, 1)
        is_even = is_known_true(size % width == 0) and is_known_true(chunks == size // width)
        return self._split(x, width, dim) if is_even else None

    def _write(self, y: Any, index: Any, value: Any) -> Any:
        """Write ``y[..., step, …] = value``, where the other entries are whole axes; True if it is done."""
        entries = list(index) if isinstance(index, tuple) else [index]
        step_places = [place for place, entry in enumerate(entries) if steps_of(entry)]
        has_only_whole_axes = all(is_whole_axis(entry) for entry in entries if not steps_of(entry))
        if not step_places:
            self._note_first_frame(y, entries, value)
        if len(step_places) != 1 or not has_only_whole_axes or not self._torch.is_tensor(value):
            return None
        axis, entry = selected_axis(y, entries, step_places[0]), entries[step_places[0]]
        step: LoopStep = steps_of(entry)[0]
        loop = step.loop
        if axis is not None and (step.rate != 1 or isinstance(entry, slice)):
            width = len(steps_of(entry)) if isinstance(entry, slice) else None
            return self._write_spaced(y, axis, step, width, value)
        first = step.offset
        if axis is None or first < loop.first or self._step_frames.count_more(y, axis, loop) != first:
            return None
        value = value.to(y.dtype).expand([*y.shape[:axis], *y.shape[axis + 1 :]]).clone()
        written = self.buffers.find(y, loop)
        if written is None:
            before = self._step_frames.copy(y)
            later = self._step_frames.from_position(before, axis, first)
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

    def _write_spaced(self, y: Any, axis: int, step: LoopStep, width: int | None, value: Any) -> Any:
        """Write frames that are several positions apart, or parts of ``width`` frames; True if it is done."""
        if not self._step_frames.takes_parts(y, axis, step, width):
            return None
        sizes = [*y.shape[:axis], *([] if width is None else [width]), *y.shape[axis + 1 :]]
        value = value.to(y.dtype).expand(sizes).clone()
        setattr(value, STEP_ATTRIBUTE, (step.loop.loop_index, step.index))
        frames = self.buffers.keep_part(y, step, axis, value)
        if step.index == EXPORTED_STEPS - 1 and len(frames) == EXPORTED_STEPS:
            joined = self._join("stack" if width is None else "cat", frames, axis)
            end = self._step_frames.end(y, axis, step)
            bounds = slice(step.offset, end, step.rate if width is None else 1)
            y[(*(slice(None),) * axis, bounds)] = joined
            self.buffers.finish_part(y, step)
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
            is_known_true(size == other) for size, other in zip(left.shape, right.shape)
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
