"""The costs of a model: counted by its own arithmetic, and known figures of published models."""

import inspect
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest

import pulse
import pulse.ops
from pulse.costs.cost_report import CostReport
from pulse.dim import SymbolScope, TDim
from pulse.facts import Array, TypedFact
from pulse.ops.attention import BandedAttention
from pulse.ops.conv import Conv, ConvTranspose, no_pads
from pulse.ops.elementwise import BroadcastingOp, Elementwise
from pulse.ops.generic import UnknownOp
from pulse.ops.matmul import MatMul
from pulse.ops.op import Op
from pulse.ops.recurrent import Recurrent
from pulse.ops.recurrent_cells import Activation, Cell, CellKind
from pulse.ops.spectral import Dft
from pulse.ops.stateful import Stateful
from pulse.ops.work import Work
from tests.pulse.cases.build import floats, model, node
from tests.pulse.model_builder import ModelBuilder
from tests.shared import shared_path


def work_of(op: Op, inputs: Sequence[TypedFact]) -> Work:
    work = op.work(inputs, op.facts(inputs))
    assert work is not None
    return work


def ones(*shape: int) -> Array:
    return np.ones(shape)


BASES = Op, Stateful, BroadcastingOp


def every_op() -> list[type[Op]]:
    modules = [import_module(f"pulse.ops.{entry.name}") for entry in iter_modules(pulse.ops.__path__)]
    return [
        item
        for module in modules
        for _, item in inspect.getmembers(module, inspect.isclass)
        if issubclass(item, Op) and item not in BASES and item.__module__ == module.__name__
    ]


def test_every_op_is_counted() -> None:
    """Every op states its work or that it only copies; only ``UnknownOp`` does not."""
    silent = {op for op in every_op() if op.work is Op.work and not op.copies and op.steps is None}
    assert silent == {UnknownOp}


class UncountedOp(Op):
    """An op of a user that does not say what it computes."""

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [inputs[0]]


class CountedOp(UncountedOp):
    """An operator that states its costs."""

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return Work.of_each(outputs[0], 3)


def test_ops_of_users_without_work_are_listed() -> None:
    builder = ModelBuilder(x="1,2,T")
    free = builder.add("counted", CountedOp(), builder["x"])
    report = pulse.cost_report(builder.model(builder.add("secret", UncountedOp(), free)))
    assert report.uncounted == ("UncountedOp",)
    assert str(report.work.elementwise) == "6*T"


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        pytest.param(Conv((1,), (1,), no_pads(1)), [ones(2, 6, 9), ones(4, 6, 3)], id="conv"),
        pytest.param(
            Conv((2,), (3,), no_pads(1), 2), [ones(1, 6, 19), ones(4, 3, 3)], id="conv with stride and groups"
        ),
        pytest.param(
            Conv((1, 2), (1, 1), no_pads(2), 6),
            [ones(1, 6, 5, 9), ones(6, 1, 2, 3)],
            id="depthwise conv of two axes",
        ),
        pytest.param(
            ConvTranspose((2,), (1,), no_pads(1), (0,)), [ones(1, 6, 5), ones(6, 4, 3)], id="transposed"
        ),
        pytest.param(
            ConvTranspose((2, 1), (1, 2), no_pads(2), (0, 0), 3),
            [ones(1, 6, 5, 4), ones(6, 2, 3, 2)],
            id="transposed with groups",
        ),
        pytest.param(MatMul(), [ones(3, 1, 4, 5), ones(2, 5, 7)], id="batched product"),
        pytest.param(MatMul(), [ones(5), ones(5, 7)], id="vector and matrix"),
        pytest.param(MatMul(), [ones(4, 5), ones(5)], id="matrix and vector"),
    ],
)
def test_multiply_adds_are_the_terms_of_the_sums(op: Op, inputs: list[Array]) -> None:
    """All inputs are 1, so each term is 1 and the outputs' sum counts the terms."""
    facts = [TypedFact.of(value) for value in inputs]
    assert work_of(op, facts).macs == int(np.sum(op.eval(inputs, {})[0]))


@pytest.mark.parametrize(("kind", "gates", "steps"), [("rnn", 1, 3), ("gru", 3, 14), ("lstm", 4, 17)])
def test_work_of_recurrent_layers_is_counted(kind: CellKind, gates: int, steps: int) -> None:
    """A layer from [T, 2, 5] to 7 units has an input product and a recurrent product per gate."""
    cell = Cell(kind, (Activation("sigmoid"), Activation("tanh"), Activation("tanh")))
    facts = [
        TypedFact.parse(text, SymbolScope())
        for text in ("11,2,5", f"{gates * 7},5", f"{gates * 7},7", f"{2 * gates * 7}")
    ]
    op = Recurrent(cell, 7)
    work = work_of(op, facts)
    assert work.macs == 11 * 2 * gates * 7 * (5 + 7)
    assert work.elementwise == 11 * 2 * 7 * steps


def test_work_of_attention_and_transforms_is_counted() -> None:
    """A band of 5 frames; a real transform of 8 points, of which 5 bins are kept."""
    scope = SymbolScope()
    q, k, v = (TypedFact.parse(text, scope) for text in ("2,T,8", "2,T,8", "2,T,6"))
    op = BandedAttention(1.0, np.zeros((1, 5), np.float32), 4)
    length = scope.parse("T")
    assert work_of(op, [q, k, v]).macs == 2 * length * 5 * (8 + 6)
    dft = Dft(1, TDim.of(8), onesided=True)
    x = TypedFact.parse("T,8,1", scope)
    assert work_of(dft, [x]).macs == length * 8 * 5 * 2
    total = Elementwise("sum")
    assert work_of(total, [x, x, x]).elementwise == 2 * 8 * length


def small() -> CostReport:
    """Conv of 3 taps and 2 to 4 channels, relu, then every second frame by another."""
    proto = model(
        [node("Conv", "x w b", "h", pads=[2, 0]), node("Relu", "h", "r"), node("Conv", "r v", strides=[2])],
        {"x": floats("x", 1, 2, 9)},
        {"w": floats("w", 4, 2, 3), "b": floats("b", 4), "v": floats("v", 4, 4, 1)},
        stream={"x": 2},
    )
    return pulse.cost_report(pulse.load(proto).analyse().declutter().pulsify(pulse=4), rate_hz=100)


def test_a_report_counts_the_work_of_a_model() -> None:
    report = small()
    assert report.parameters == 4 * 2 * 3 + 4 + 4 * 4
    assert report.weight_bytes == 4 * report.parameters
    assert report.per_frame(report.work.macs) == 24 + 8
    assert report.per_second(report.work.macs) == 3200
    assert report.pulse_cost is not None
    assert report.pulse_cost.work.macs == 4 * 24 + 2 * 16
    assert (report.pulse_cost.delay_bytes, report.pulse_cost.state_bytes) == (2 * 2 * 4, 2 * 2 * 4)


def test_a_report_shows_its_counts_as_text_and_data() -> None:
    report = small()
    lines = str(report).splitlines()
    assert "parameters" in lines[2]
    assert "44" in lines[2]
    assert "per frame, 3200 per second" in str(report)
    assert any("24*T" in line for line in lines)
    data = report.as_dict()
    assert data["macs_per_second"] == 3200
    assert data["macs_per_pulse"] == 128
    assert [row["op"] for row in data["nodes"]].count("Conv") == 2


def test_every_stage_of_a_model_has_the_same_costs() -> None:
    """The stages are a file's bytes, Model, TypedModel and Program; weights that two nodes share count once."""
    proto = model(
        [node("MatMul", "x w", "h"), node("MatMul", "h w")],
        {"x": floats("x", 1, 9, 4)},
        {"w": floats("w", 4, 4)},
        stream={"x": 1},
    )
    typed = pulse.load(proto).analyse()
    program = typed.pulsify().compile()
    for stage in (proto.SerializeToString(), pulse.load(proto), typed, typed.pulsify(), program):
        report = pulse.cost_report(stage)
        assert (report.parameters, report.weight_bytes) == (16, 64)
        assert str(report.work.macs) == "32*T"
        assert report.per_second(report.work.macs) is None
    assert report.program_cost is not None
    assert report.program_cost.instructions == len(program.instructions)
    with pytest.raises(pulse.InputError, match="numpy backend has no instructions"):
        pulse.cost_report(typed.pulsify().compile("numpy"))


def test_products_over_time_grow_without_limit() -> None:
    scores = [node("Transpose", "x", "t", perm=[0, 2, 1]), node("MatMul", "x t")]
    report = pulse.cost_report(model(scores, {"x": floats("x", 1, 9, 4)}, stream={"x": 1}))
    assert str(report.work.macs) == "4*T*T"
    assert report.per_frame(report.work.macs) is None
    assert "4*T*T" in report.totals().text()


def test_bodies_count_for_each_frame() -> None:
    from tests.pulse.cases import scan

    for name, proto, _ in (case for family in scan.ALL for case in family()):
        if name.endswith("-T"):
            work = pulse.cost_report(proto).work
            assert (work.macs + work.elementwise).symbols, name


def test_the_report_agrees_with_published_figures_of_gtcrn() -> None:
    """23.67 thousand parameters and about 33 million operations a second, normalisations and gates included.

    Here normalisations are folded into convolutions, which leaves 23,372; the file stores the two constant filter
    banks besides (64 x 192 each). Multiply-adds and elementwise operations together are 31.4 million a second.
    """
    report = pulse.cost_report(shared_path("models") / "gtcrn_offline.onnx", rate_hz=62.5)
    assert report.parameters == 23_372 + 2 * 64 * 192
    macs, elementwise = report.per_second(report.work.macs), report.per_second(report.work.elementwise)
    assert macs is not None
    assert elementwise is not None
    assert 30e6 < macs + elementwise < 34e6


def test_the_report_agrees_with_published_figures_of_firered_vad() -> None:
    """The model has 0.6 million parameters, and a multiply-add in each frame for each of them."""
    typed = pulse.load(shared_path("models/fireredvad_stream.onnx"), inputs={"feat": "1,T,80,f32"}).analyse()
    report = pulse.cost_report(typed.declutter(), rate_hz=100)
    assert report.parameters == pytest.approx(588_000, rel=0.05)
    assert report.per_frame(report.work.macs) == pytest.approx(report.parameters, rel=0.05)
