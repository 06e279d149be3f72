"""Bodies that run for every frame of a pulse: ONNX Scan."""

from collections.abc import Sequence
from dataclasses import field, replace

from pulse.dim import TDim
from pulse.facts import BOOL, DType
from pulse.onnx.proto import ValueInfoProto
from pulse.onnx.write.graph import value_info
from pulse.onnx.write.node import NodeWriter
from pulse.ops.scan import ScanAxis
from pulse.support.record import record


@record(eq=False)
class ScanWriter:
    """A Scan under construction.

    w      the node around it
    inner  the same node, adding to the body
    """

    w: NodeWriter
    inner: NodeWriter
    _inputs: list[ValueInfoProto] = field(default_factory=list[ValueInfoProto])
    _outputs: list[ValueInfoProto] = field(default_factory=list[ValueInfoProto])
    _fed: list[str] = field(default_factory=list[str])
    _input_axes: list[ScanAxis] = field(default_factory=list[ScanAxis])
    _output_axes: list[ScanAxis] = field(default_factory=list[ScanAxis])

    @classmethod
    def begin(cls, w: NodeWriter) -> "ScanWriter":
        """Return an empty body."""
        return cls(w, replace(w, graph=w.graph.body()))

    def add_state(self, value: str, name: str, dtype: DType, sizes: Sequence[int]) -> str:
        """Add a state that begins as ``value``; return its name in the body. All states come before the frames."""
        return self._add_input(value, name, dtype, sizes)

    def add_frame(
        self, value: str, name: str, dtype: DType, sizes: Sequence[int], scan_axis: ScanAxis
    ) -> str:
        """Add one frame of a wire outside; return its name in the body. ``sizes`` has no time axis."""
        self._input_axes.append(scan_axis)
        return self._add_input(value, name, dtype, sizes)

    def add_validity(self, pulse: int, offset: int, length: TDim | None) -> str | None:
        """Add a bool for each frame, whether it is one of the stream; return its name, None if it is not needed."""
        if offset <= 0 and length is None:
            return None
        positions = self.w.clock.positions(pulse, -offset, pulse)
        inside = self.w.clock.emit_positions_inside(positions, offset > 0, length)
        assert inside is not None
        return self.add_frame(inside, "valid", BOOL, (), ScanAxis(0))

    def keep(
        self, valid: str | None, new: str, old: str, name: str, dtype: DType, sizes: Sequence[int]
    ) -> None:
        """Set a state after the frame; it is unchanged if the frame is outside the stream."""
        if valid is not None:
            new = self.inner.emit("Where", [valid, new, old], f"{name}.updated")
        self._add_output(new, f"{name}.after", dtype, sizes)

    def add_scan_output(
        self, value: str, name: str, dtype: DType, sizes: Sequence[int], scan_axis: ScanAxis
    ) -> None:
        """Add an output of the body for each frame, after all states."""
        self._output_axes.append(scan_axis)
        self._add_output(value, name, dtype, sizes)

    def finish(self, suffixes: Sequence[str | None]) -> list[str]:
        """Add the node; the states after it, then the gathered frames."""
        from onnx import helper

        body = helper.make_graph(self.inner.graph.nodes, f"{self.w.name}.body", self._inputs, self._outputs)
        attributes = {
            "scan_input_axes": [scan_axis.axis for scan_axis in self._input_axes],
            "scan_output_axes": [scan_axis.axis for scan_axis in self._output_axes],
            "scan_input_directions": [int(scan_axis.backward) for scan_axis in self._input_axes],
            "scan_output_directions": [int(scan_axis.backward) for scan_axis in self._output_axes],
        }
        non_defaults = {name: values for name, values in attributes.items() if any(values)}
        count = len(self._input_axes)
        return self.w.emit_all("Scan", self._fed, suffixes, body=body, num_scan_inputs=count, **non_defaults)

    def _add_input(self, value: str, name: str, dtype: DType, sizes: Sequence[int]) -> str:
        inside = self.w.graph.names.new(f"{self.w.name}.{name}")
        self._inputs.append(value_info(inside, dtype, sizes))
        self._fed.append(value)
        return inside

    def _add_output(self, value: str, name: str, dtype: DType, sizes: Sequence[int]) -> None:
        """Add an output; outputs of a body have their own names, made by its nodes."""
        is_inner = any(value in node.output for node in self.inner.graph.nodes)
        if not is_inner or any(value == output.name for output in self._outputs):
            value = self.inner.emit("Identity", [value], name)
        self._outputs.append(value_info(value, dtype, sizes))
