# pyright: basic, reportMissingImports=false
"""Replacement of the unrolled steps of a loop in an export with one Scan."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pulse.errors import LoadError
from pulse.torch.replacements.loop_nodes import NodeInserter
from pulse.torch.replacements.loop_numbers import StepNumbers, is_step_number, step_number
from pulse.torch.replacements.loop_steps import EXPORTED_STEPS, LOOP_DOMAIN, NO_ARITHMETIC, FrameLoop
from pulse.torch.replacements.loop_values import (
    MadeOfSteps,
    are_alike,
    are_equal,
    constant_numbers,
    depends_on,
    find_levels,
    first_step_computes,
    is_frame,
    use_instead,
)

LOOP_ADVICE = (
    "a loop over time is exported if each step does the same with a frame of this step and with what the step before "
    "has left, and its frames are joined with torch.stack or torch.cat, or written to one tensor; otherwise write it "
    "as layers (nn.GRU, convolutions, cumsum)"
)

NO_FRAME = "none of its steps takes its own frame, as x[:, t] does"


class _NoScanError(Exception):
    """The steps of a loop differ; the message says how."""


def roll_loops(program: Any, loops: Sequence[FrameLoop], title: str, failures: Mapping[int, str]) -> None:
    """Replace the marked steps of all loops with Scans.

    failures  the index of a loop that is known to be none -> the reason
    Raises    LoadError: a loop is not a scan
    """
    if not loops:
        return
    graph = program.model.graph
    for loop in loops:
        try:
            if loop.loop_index in failures:
                raise _NoScanError(failures[loop.loop_index])
            _roll(graph, loop)
        except _NoScanError as reason:
            raise LoadError(f"{title}: {loop.refusal(str(reason))}; {LOOP_ADVICE}") from None
    from onnx_ir.passes.common import RemoveUnusedNodesPass, TopologicalSortPass

    RemoveUnusedNodesPass()(program.model)
    TopologicalSortPass()(program.model)
    left = {int(node.attributes["loop"].value) for node in graph if node.domain == LOOP_DOMAIN}
    if left:
        reason = loops[min(left)].refusal("the result of its last step is used after the loop")
        raise LoadError(f"{title}: {reason}; {LOOP_ADVICE}")


def _roll(graph: Any, loop: FrameLoop) -> None:
    stores = _marked_nodes(graph, loop, "Store")
    for node in stores:
        _skip_copies(graph, node)
    stacks = [*_marked_nodes(graph, loop, "Stack"), *_last_stores(stores)]
    if not stacks and not _marked_nodes(graph, loop, "Frame"):
        raise _NoScanError(NO_FRAME)
    if not stacks:
        raise _NoScanError("no frames of it are joined")
    try:
        _replace_steps(graph, loop, stacks, 0)
    except _NoScanError:
        if not any(node.attributes["step"].value for node in _marked_nodes(graph, loop, "Frame")):
            raise
        try:
            _replace_steps(graph, loop, stacks, 1)
        except _NoScanError:
            pass
        else:
            return
        raise


def _replace_steps(graph: Any, loop: FrameLoop, stacks: Sequence[Any], peeled: int) -> None:
    """Replace the steps with a Scan, except for some first ones, which remain as they are."""
    body = _Body(graph, loop, peeled)
    scanned = [body.output(_frames_of(node)[peeled:]) for node in stacks]
    body.finish(stacks, scanned)


def _marked_nodes(graph: Any, loop: FrameLoop, op_type: str) -> list[Any]:
    return [
        node
        for node in graph
        if node.domain == LOOP_DOMAIN
        and node.op_type == op_type
        and node.attributes["loop"].value == loop.loop_index
    ]


def _frames_of(node: Any) -> tuple[Any, ...]:
    """Return the frames that a node joins: the inputs of a Stack, or those of a chain of Stores that ends with it."""
    if node.op_type == "Stack":
        return tuple(node.inputs)
    frames: list[Any] = []
    store = node
    for step in range(EXPORTED_STEPS - 1, -1, -1):
        if store is None or store.op_type != "Store" or store.attributes["step"].value != step:
            raise _NoScanError("its steps do not write one frame each")
        frames.insert(0, store.inputs[1])
        store = store.inputs[0].producer()
    return tuple(frames)


def _skip_copies(graph: Any, node: Any) -> None:
    """Replace copies of a Store's output with the output itself."""
    for user, index in tuple(node.outputs[0].uses()):
        if user.op_type in ("Identity", "CastLike") and index == 0:
            use_instead(graph, user.outputs[0], node.outputs[0])


def _last_stores(stores: Sequence[Any]) -> list[Any]:
    """Return the last Store of each chain."""
    return [node for node in stores if node.attributes["step"].value == EXPORTED_STEPS - 1]


class _Body:
    """The body of a Scan, built from the first step; all steps must be equal.

    peeled  the number of first steps that come before the Scan, since they differ from the others
    """

    def __init__(self, graph: Any, loop: FrameLoop, peeled: int) -> None:
        import onnx_ir

        self._ir = onnx_ir
        self._graph = graph
        self._loop_index = loop.loop_index
        self._peeled = peeled
        self._levels = find_levels(graph, loop, peeled)
        self._node_indices = {id(value): index for index, node in enumerate(graph) for value in node.outputs}
        self._nodes: list[Any] = []
        self._steps: set[int] = set()
        self._copies = MadeOfSteps()
        self._pending: list[tuple[int, tuple[Any, ...]]] = []
        self._first_states: list[Any] = []
        self._state_inputs: list[Any] = []
        self._next_states: list[Any] = []
        self._frames: dict[tuple[int, int], tuple[Any, Any, int]] = {}
        self._inserter = NodeInserter(onnx_ir, graph)
        self._numbers = StepNumbers()
        self._inner_values = MadeOfSteps()

    def output(self, values: Sequence[Any]) -> Any:
        """Return the value in the body that is ``values[k]`` in step k."""
        value = self._value(tuple(values))
        return self._add_node("Identity", [value], values[0])

    def _add_node(self, op_type: str, inputs: list[Any], like: Any) -> Any:
        node = self._ir.Node("", op_type, inputs, num_outputs=1)
        node.outputs[0].type, node.outputs[0].shape = like.type, like.shape
        self._nodes.append(node)
        return node.outputs[0]

    def _value(self, values: tuple[Any, ...]) -> Any:
        if len(values) < 2:
            raise _NoScanError("a step needs more previous steps than are exported")
        known = self._inner_values.find(values)
        if len(known) > 1:
            raise _NoScanError("its states begin alike for as many steps as are exported")
        if known:
            return known[0]
        inner = self._make(values)
        self._inner_values.keep(values, inner)
        return inner

    def _make(self, values: tuple[Any, ...]) -> Any:
        first = values[0]
        levels = [self._levels.get(id(value)) for value in values]
        if all(value is first for value in values):
            if levels[0] is not None:
                raise _NoScanError("all steps use the result of one of them")
            return first
        if all(map(is_step_number, values)):
            number = self._numbers.find(values)
            if number is None:
                raise _NoScanError("its steps are not alike")
            return self._numbers.add(number, self._input("number", values[0]))
        if self._is_frame_before(values, levels):
            values, levels[0] = (self._take_frame(first.producer(), self._graph[0]), *values[1:]), None
        else:
            frame = self._find_frame(values)
            if frame is not None:
                return frame
        if levels[0] is None and (
            all(level is None or level < step for step, level in enumerate(levels))
            if any(level is not None for level in levels)
            else all(map(depends_on, values[1:], values))
        ):
            return self._operation(values) if first_step_computes(values) else self._add_state(values)
        constants = [constant_numbers(value) for value in values]
        if all(constant is not None for constant in constants):
            if all(are_equal(constant, constants[0]) for constant in constants):
                return first
            raise _NoScanError(NO_ARITHMETIC)
        return self._operation(values)

    def _is_frame_before(self, values: tuple[Any, ...], levels: Sequence[int | None]) -> bool:
        """Return whether the first step takes a frame from before the loop, and the others what steps have written."""
        marks = [is_frame(value) for value in values]
        earlier = all(level is None or level < step for step, level in enumerate(levels) if step)
        return marks[0] and not any(marks[1:]) and earlier

    def _take_frame(self, mark: Any, place: Any) -> Any:
        """Return the frame of a mark by an ordinary node, which is inserted before ``place``."""
        index, frame = self._inserter.constant(place, mark.attributes["step"].value), mark.outputs[0]
        axis = mark.attributes["axis"].value
        return self._inserter.insert(
            place, "Gather", [mark.inputs[0], index], frame.type, frame.shape, axis=axis
        )

    def _find_frame(self, values: tuple[Any, ...]) -> Any:
        if not all(map(is_frame, values)):
            return None
        nodes = [value.producer() for value in values]
        x, axis = nodes[0].inputs[0], nodes[0].attributes["axis"].value
        alike = all(node.inputs[0] is x and node.attributes["axis"].value == axis for node in nodes)
        if not alike or [node.attributes["step"].value - self._peeled for node in nodes] != list(
            range(len(nodes))
        ):
            raise _NoScanError("a step takes a frame other than its own")
        key = id(x), axis
        if key not in self._frames:
            self._frames[key] = x, self._input("frame", values[0]), axis
        return self._frames[key][1]

    def _input(self, prefix: str, like: Any) -> Any:
        index = len(self._state_inputs) + len(self._frames) + len(self._numbers.inputs)
        return self._ir.Value(
            name=f"loop{self._loop_index}.{prefix}{index}", type=like.type, shape=like.shape
        )

    def _add_state(self, values: tuple[Any, ...]) -> Any:
        """Add a state, which each step takes from the step before and the first from ``values[0]``; return it."""
        value, index = self._input("state", values[1]), len(self._next_states)
        self._first_states.append(self._expand_first(values[0], values[1]))
        self._state_inputs.append(value)
        self._next_states.append(None)
        self._pending.append((index, values[1:]))
        return value

    def _expand_first(self, first: Any, second: Any) -> Any:
        """Return the state before the first step, in the shape that the second step has."""
        if first.shape == second.shape:
            return first
        sizes, target = list(first.shape), list(second.shape)
        fits = len(sizes) <= len(target) and all(isinstance(size, int) for size in target)
        if not fits or any(size not in (1, other) for size, other in zip(sizes[::-1], target[::-1])):
            raise _NoScanError(f"its state has the shape {first.shape} first, and {second.shape} later")
        place = self._graph[0]
        inputs = [first, self._inserter.constant(place, target)]
        return self._inserter.insert(place, "Expand", inputs, second.type, second.shape)

    def _operation(self, values: tuple[Any, ...]) -> Any:
        nodes = [value.producer() for value in values]
        first = nodes[0]
        if any(node is None for node in nodes):
            raise _NoScanError("its first step differs from the others")
        for node in nodes[1:]:
            if not are_alike(first, node):
                raise _NoScanError(f"a step computes {first.op_type}, and the next one {node.op_type}")
        index = next(n for n, output in enumerate(first.outputs) if output is values[0])
        if any(node.outputs[index] is not value for node, value in zip(nodes, values)):
            raise _NoScanError("its steps are not alike")
        self._steps.update(map(id, nodes))
        copies = self._copies.find(nodes)
        if not copies:
            inputs = [
                None if slot is None else self._value(tuple(node.inputs[n] for node in nodes))
                for n, slot in enumerate(first.inputs)
            ]
            copy = self._ir.Node(
                first.domain,
                first.op_type,
                inputs,
                attributes=list(first.attributes.values()),
                overload=first.overload,
                num_outputs=len(first.outputs),
                metadata_props=dict(first.metadata_props),
            )
            for mine, original in zip(copy.outputs, first.outputs):
                mine.type, mine.shape = original.type, original.shape
            self._nodes.append(copy)
            self._copies.keep(nodes, copy)
            copies = [copy]
        return copies[0].outputs[index]

    def finish(self, stacks: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Insert the Scan before the first node that needs it, and replace the joined frames with its outputs."""
        ir = self._ir
        while self._pending:  # after all outputs, because these are compared up to the last step
            longest = max(range(len(self._pending)), key=lambda place: len(self._pending[place][1]))
            index, values = self._pending.pop(longest)
            self._next_states[index] = self._add_node("Identity", [self._value(values)], values[0])
        last_values = self._keep_last_values()
        frames = list(self._frames.values())
        if not frames:
            raise _NoScanError(NO_FRAME)
        for n, value in enumerate(value for node in self._nodes for value in node.outputs):
            value.name = f"loop{self._loop_index}.{n}"
        for n, node in enumerate(self._nodes):
            node.name = f"loop{self._loop_index}.{node.op_type}_{n}"
        body = ir.Graph(
            [*self._state_inputs, *(inner for _, inner, _ in frames), *self._numbers.inputs.values()],
            [*self._next_states, *outputs],
            nodes=self._nodes,
            name="loop",
        )
        axes = [node.attributes["axis"].value for node in stacks]
        first = min(stacks, key=lambda node: self._node_indices[id(node.outputs[0])])
        scanned = [self._after_peeled(first, x, axis) for x, _, axis in frames]
        input_axes = [axis for _, _, axis in frames]
        scanned += self._numbers.insert(self._inserter, first, scanned[0], input_axes[0])
        scan = ir.Node(
            "",
            "Scan",
            [*self._first_states, *scanned],
            attributes=[
                ir.AttrGraph("body", body),
                ir.AttrInt64("num_scan_inputs", len(scanned)),
                ir.AttrInt64s("scan_input_axes", input_axes + [0] * len(self._numbers.inputs)),
                ir.AttrInt64s("scan_output_axes", axes),
            ],
            num_outputs=len(self._next_states) + len(outputs),
        )
        self._graph.insert_before(first, scan)
        joined = scan.outputs[len(self._next_states) :]
        for node, value, frame in zip(stacks, joined, outputs):
            self._replace(node, value, frame)
        for value, index in last_values:
            result = scan.outputs[index]
            result.type, result.shape = value.type, value.shape
            use_instead(self._graph, value, result)
        self._take_peeled_frames()

    def _after_peeled(self, place: Any, x: Any, axis: int) -> Any:
        """Return the frames of x that the Scan takes, by nodes before ``place``."""
        if not self._peeled:
            return x
        bounds = [
            self._inserter.constant(place, [number])
            for number in (self._peeled, np.iinfo(np.int64).max, axis)
        ]
        return self._inserter.insert(place, "Slice", [x, *bounds], x.type)

    def _take_peeled_frames(self) -> None:
        """Make an ordinary node of each mark of a frame, or a number, that a peeled step takes."""
        for mark in list(self._graph):
            if mark.domain != LOOP_DOMAIN or mark.op_type not in ("Frame", "Step"):
                continue
            step = mark.attributes["step"].value
            if mark.attributes["loop"].value != self._loop_index or step >= self._peeled:
                continue
            value = mark.outputs[0]
            if mark.op_type == "Step":
                use_instead(
                    self._graph, value, self._inserter.constant(mark, step_number(mark), value.dtype.numpy())
                )
            else:
                use_instead(self._graph, value, self._take_frame(mark, mark))

    def _join_peeled(self, node: Any, value: Any) -> Any:
        """Return the frames of the Scan joined to those of the peeled steps."""
        axis = node.attributes["axis"].value
        parts: list[Any] = []
        for frame in _frames_of(node)[: self._peeled]:
            if node.op_type == "Stack" and not node.attributes["new"].value:
                parts.append(frame)
                continue
            axes = self._inserter.constant(node, [axis])
            parts.append(self._inserter.insert(node, "Unsqueeze", [frame, axes], frame.type))
        return self._inserter.insert(node, "Concat", [*parts, value], value.type, axis=axis)

    def _replace(self, node: Any, value: Any, frame: Any) -> None:
        old = node.outputs[0]
        value.type = old.type
        if node.op_type == "Stack" and not node.attributes["new"].value:
            value = self._merge_axes(node, value, frame)
        if self._peeled:
            value = self._join_peeled(node, value)
        value.shape = old.shape
        use_instead(self._graph, old, value)

    def _merge_axes(self, node: Any, value: Any, frame: Any) -> Any:
        """Return frames [..., T, M, ...] as [..., T * M, ...]."""
        axis = node.attributes["axis"].value
        trailing_sizes: list[Any] = [
            dim if isinstance(dim, int) else None for dim in list(frame.shape)[axis + 1 :]
        ]
        if None in trailing_sizes:
            raise _NoScanError("frames are joined before an axis of another length that is not constant")
        sizes = self._inserter.constant(node, [*[0] * axis, -1, *trailing_sizes])
        return self._inserter.insert(node, "Reshape", [value, sizes], value.type)

    def _keep_last_values(self) -> list[tuple[Any, int]]:
        """Add states for values of the last step that are used after the loop; return each with its state's index."""
        last_values: list[tuple[Any, int]] = []
        for values, inner in self._inner_values.list_all():
            value = values[-1]
            is_read_after = any(
                id(user) not in self._steps and user.domain != LOOP_DOMAIN for user, _ in value.uses()
            )
            is_output = any(value is output for output in self._graph.outputs)
            if (
                len(values) < EXPORTED_STEPS - self._peeled
                or self._levels.get(id(value)) != EXPORTED_STEPS - 1 - self._peeled
                or not (is_read_after or is_output)
            ):
                continue
            if self._peeled:
                raise _NoScanError(
                    "its first step differs, and the result of its last step is used after the loop"
                )
            sizes = list(value.shape)
            if not all(isinstance(size, int) for size in sizes):
                raise _NoScanError(f"the result of its last step has no constant shape: {value.shape}")
            dtype = value.dtype.numpy()
            self._first_states.append(self._inserter.constant(self._graph[0], np.zeros(sizes, dtype), dtype))
            self._state_inputs.append(self._input("kept", value))
            last_values.append((value, len(self._next_states)))
            self._next_states.append(self._add_node("Identity", [inner], value))
        return last_values
