"""Conversion: from a PyTorch module to a model, step by step."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from pulse.errors import FactError, InputError, LoadError, PulseError
from pulse.loading.onnx_files import read_onnx
from pulse.models import Model, TypedModel
from pulse.onnx.proto import ModelProto
from pulse.proof.oracle import typed_oracle
from pulse.torch.advice import describe_branches, describe_flip
from pulse.torch.arguments import ModuleCall
from pulse.torch.axes import InputAxes, describe_time, find_time
from pulse.torch.comparison import Comparison
from pulse.torch.exporter import Export, ExportRequest, export, name_outputs, run_example
from pulse.torch.length_inputs import describe_lengths, follow_lengths
from pulse.torch.lengths import Lengths, split_multiple
from pulse.torch.module import ModuleOracle, example_tensors, samples, use_dtype, with_plain_results
from pulse.torch.module_original import ModuleOriginal
from pulse.torch.preservation import ModuleState
from pulse.torch.quiet_exporter import silence_exporter
from pulse.torch.states import (
    BUFFERS,
    StateLeaf,
    describe_states,
    find_buffers,
    find_states,
    keep_states,
    name_results,
    require_equal_calls,
    with_buffers,
)


class Conversion:
    """The facts about a module that are known so far; ``convert`` exports, reads and compares it.

    torch   the package
    module  what is called; a step may wrap it, so that its call has other arguments
    call    how it is called
    title   its name in messages
    state   restores its buffers before each run
    dtype   the float type to compute in; None: the module's own
    states  the argument ``states`` of ``from_torch``
    """

    def __init__(
        self,
        torch: Any,
        module: Any,
        call: ModuleCall,
        title: str,
        state: ModuleState,
        dtype: Any,
        states: Mapping[str, Any] | None,
    ) -> None:
        self.module, self.call = module, call
        self._torch, self._title, self._state, self._dtype, self._states = torch, title, state, dtype, states
        self._branches: list[str] = []
        with self._quiet_conversion():
            self._example_result = self._run_example()
            self.module = with_plain_results(torch, module, self._example_result)
            if self.module is not module:
                state.restore_eval()
                self._example_result = self._run_example()
        state.restore_eval()
        self.state_leaves = self._find_states()
        """The parameters that are states, and the outputs that are their next values."""
        self._state_parameters = {leaf.parameter for leaf in self.state_leaves}

    def follow_lengths(self, finds_time: bool) -> list[str]:
        """Take the inputs that are lengths from the sizes of others. Returns notes for the user.

        finds_time  whether the time axis is not given
        """
        with self._quiet_conversion():
            self.module, self.call, lengths_of = follow_lengths(
                self._torch, self.module, self.call, self._find_time if finds_time else None
            )
            if lengths_of:
                self._example_result = self._run_example()
                self.state_leaves = self._find_states()
        return describe_lengths(lengths_of)

    def find_time(self) -> list[str]:
        """Find the time axis, if the lengths do not determine it. Returns notes for the user."""
        if not self.call.axes:
            with silence_exporter():
                self.call = replace(self.call, axes=self._find_time(self.module, self.call))
        return [describe_time(self.call.axes)] if self.call.axes else []

    def keep_buffers(self) -> None:
        """Make states of the buffers that a call assigns; with a time axis, there are no states but given ones."""
        if self.call.axes and self._states is None:
            self.state_leaves = []
            return
        with self._quiet_conversion():
            buffers = find_buffers(self._torch, self.module, self.call, self._state.restore_eval, self._title)
            if buffers:
                self.module, self.call = with_buffers(self._torch, self.module, self.call, buffers)
                self._example_result = self._run_example()
                self.state_leaves += find_states(
                    self._torch, self.call, self._example_result, self._title, {BUFFERS: 1}
                )

    def _export(self, opset: int | None) -> Export:
        """Run PyTorch's exporter. Raises LoadError: it fails."""
        torch, leaves, result = self._torch, self.state_leaves, self._example_result
        outputs = name_results(torch, result, leaves) if leaves else name_outputs(torch, result)
        self._state.restore_eval()
        with self._quiet_conversion():
            return export(
                ExportRequest(torch, self.module, self.call, opset, self._title, outputs, self._state)
            )

    def convert(
        self, opset: int | None, lengths: Sequence[Lengths] | None, compare: bool, notes: list[str]
    ) -> tuple[Model, Export]:
        """Return the model and its export; add to the notes.

        If the example decides a condition on lengths so that the model is right for few of them (``if n % 4: pad``), an
        example that is one frame longer is tried too.

        Raises LoadError: the exporter fails, or the results differ; FactError: a type or shape of the export is wrong
        """
        example = self.call
        try:
            return self._convert(opset, lengths, compare, notes)
        except (FactError, LoadError):
            if compare and self._branches and self._lengthen_example():
                with suppress(PulseError):
                    return self._convert(opset, lengths, compare, notes, [example.frames])
            raise

    def _convert(
        self,
        opset: int | None,
        lengths: Sequence[Lengths] | None,
        compare: bool,
        notes: list[str],
        extra_lengths: Sequence[Lengths] = (),
    ) -> tuple[Model, Export]:
        self._branches = []
        onnx_export = self._export(opset)
        self._branches = onnx_export.branches
        read = read_onnx(
            onnx_export.proto,
            inputs=self._multiples_alone(onnx_export.proto),
            ignore_value_info=True,
            tensors=onnx_export.tensors,
        )
        model = keep_states(read, self.state_leaves)
        notes += describe_states(model)
        if compare:
            notes += self._compare(model, onnx_export, lengths, extra_lengths)
        return model, onnx_export

    def _multiples_alone(self, proto: ModelProto) -> dict[str, str]:
        """Return the shapes of inputs with a multiple of a length that no axis has, as the largest one: 4*(T/4)."""

        def text(dim: Any) -> str:
            factor, name = split_multiple(dim.dim_param) if "*" in dim.dim_param else (1, "")
            if factor > 1 and name not in self.call.frames:
                return f"{factor}*({name}/{factor})"
            return dim.dim_param or str(dim.dim_value)

        dims = {value.name: value.type.tensor_type.shape.dim for value in proto.graph.input}
        shapes = {name: ",".join(map(text, sizes)) for name, sizes in dims.items()}
        return {name: shape for name, shape in shapes.items() if "(" in shape}

    def _lengthen_example(self) -> bool:
        """Make the example one frame longer; return whether the module takes it. False if it has states."""
        if not self.call.axes or self.state_leaves:
            return False
        arguments = dict(self.call.arguments)
        for name, axes in self.call.axes.items():
            for axis, symbol in axes.items():
                frames = arguments[name].shape[axis]
                order = self._torch.arange(frames + split_multiple(symbol)[0]) % frames
                arguments[name] = arguments[name].index_select(axis, order.to(arguments[name].device))
        self.call = replace(self.call, arguments=arguments)
        with suppress(InputError), self._quiet_conversion():
            self._example_result = self._run_example()
            return True
        return False

    def _compare(
        self,
        model: Model,
        onnx_export: Export,
        lengths: Sequence[Lengths] | None,
        extra_lengths: Sequence[Lengths] = (),
    ) -> list[str]:
        """Run the module and its model, at the length of the example and others. Returns notes.

        extra_lengths  more lengths at which they are compared
        Raises         LoadError: they differ.
        """
        with silence_exporter():
            typed = self._analyse(model, onnx_export.branches)
            examples = samples(self._torch, self.call, list(typed.inputs), self._title)
            oracle, precise = (
                ModuleOracle(
                    self._torch, self.module, self.call, self._state.restore_eval, list(typed.outputs), dtype
                )
                for dtype in (self._dtype, self._torch.float64)
            )
            comparison = Comparison(
                self._title,
                oracle,
                typed_oracle(typed),
                examples,
                self.call.list_axes(),
                precise=precise,
                bind=typed.bind,
                branches=onnx_export.branches,
            )
            notes = comparison.require_equal(lengths, onnx_export.trims)
            notes += self._describe_flips(typed, onnx_export.flips)
            if extra_lengths:
                comparison.require_equal(extra_lengths)
            if model.variables:
                require_equal_calls(self._title, oracle, typed, examples, model.variables)
        return notes

    def _describe_flips(self, typed: TypedModel, flips: Mapping[str, int]) -> list[str]:
        """Return notes about conditions that change at a length that the model takes."""
        symbol, *others = self.call.frames or [""]
        notes: list[str] = []
        for line, frames in flips.items() if not others and symbol else ():
            lengths = {dim: frames for assumption in typed.scope.assumptions for dim in assumption.symbols}
            if all(assumption.eval(lengths) for assumption in typed.scope.assumptions):
                notes.append(describe_flip(line, symbol, frames))
        return notes

    def original(self, model: Model) -> ModuleOriginal:
        """Return the original of the model: a proof compares the streams with it."""
        return ModuleOriginal(
            torch=self._torch,
            module=self.module,
            call=self.call,
            name=self._title,
            outputs=model.graph.output_names,
            states=self.state_leaves,
            dtype=self._dtype,
        )

    def _analyse(self, model: Model, branches: Sequence[str]) -> TypedModel:
        """Return the typed model. Raises FactError, LoadError: with the conditions that the example has decided."""
        try:
            return model.analyse()
        except (FactError, LoadError) as error:
            if not branches:
                raise
            raise type(error)(f"{self._title}: {error}; {describe_branches(branches)}") from error

    @contextmanager
    def _quiet_conversion(self) -> Generator[None]:
        """Silence the prints of PyTorch, and use the type of the conversion."""
        with silence_exporter(), use_dtype(self._torch, self.module, self._dtype):
            yield

    def _run_example(self) -> Any:
        return run_example(self._torch, self.module, self.call, self._title)

    def _find_states(self) -> list[StateLeaf]:
        return find_states(self._torch, self.call, self._example_result, self._title, self._states)

    def _find_time(self, module: Any, call: ModuleCall) -> InputAxes:
        oracle = ModuleOracle(self._torch, module, call, self._state.restore_eval, [], self._dtype)
        return find_time(self._title, oracle, example_tensors(self._torch, call, self._state_parameters))
