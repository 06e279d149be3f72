"""The file as a whole: opsets, names, metadata, and what cannot be written."""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache, partial

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import defs
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

import pulse
from pulse.dim import SymbolScope, TDim
from pulse.errors import LoadError, WriteError
from pulse.facts import Array
from pulse.metadata import StateMetadata, StreamMetadata
from pulse.onnx.write import walk
from pulse.onnx.write.dims import DimWriter
from pulse.onnx.write.graph import GraphWriter
from pulse.onnx.write.model import OPSETS, offline_to_onnx, to_onnx
from pulse.ops.elementwise import Elementwise
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.norm import LayerNorm
from pulse.ops.op import Env
from pulse.ops.reduce import Reduce
from pulse.ops.spectral import Dft
from pulse.program.whole_stream import stream_whole
from pulse.runtimes.onnx_runtimes import RuntimeProgram
from tests.pulse.cases.build import floats, model, node
from tests.pulse.chunks import models
from tests.pulse.onnx.write.file_proof import assert_file_streams, assert_model_streams, kinds, read_metadata
from tests.pulse.onnx.write.small_models import causal, chain
from tests.pulse.plain_ops import PointwiseOp


class Unwritten(PointwiseOp):
    """An op that no writer knows."""

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [*inputs]


@cache
def newest_of_onnxruntime() -> int:
    """The newest opset that the installed onnxruntime loads."""

    def loads(opset: int) -> bool:
        proto = model([node("Identity", "x")], {"x": floats("x", 1, 2)}, {}, opset)
        proto.ir_version = 8
        try:
            onnxruntime.InferenceSession(proto.SerializeToString())
        except InvalidArgument:
            return False
        return True

    return max(filter(loads, OPSETS))


@pytest.mark.parametrize("opset", OPSETS)
def test_each_opset_gets_its_own_form(opset: int) -> None:
    """Norms, reductions and activations in the form of each version; an offset, so that time is computed."""
    if opset > min(defs.onnx_opset_version(), newest_of_onnxruntime()):
        pytest.skip("needs newer versions of onnx and onnxruntime")
    weight = {"w": floats("w", 2, 2, 3), "s": np.ones(2, np.float32), "b": floats("b", 2)}
    nodes = [
        node("Conv", "x w", "a", pads=[0, 2]),
        node("Transpose", "a", "rows", perm=[0, 2, 1]),
        node("LayerNormalization", "rows s b", "n"),
        node("ReduceMax", "n", "most", axes=[2]),
        node("Sub", "n most", "d"),
        node("Transpose", "d", "e", perm=[0, 2, 1]),
        node("Conv", "e w", pads=[2, 0]),
    ]
    proto = assert_model_streams(
        model(nodes, {"x": floats("x", 1, 2, 9)}, weight, 17, {"x": 2}), 2, opset=opset
    )
    assert proto.opset_import[0].version == opset
    assert ("LayerNormalization" in kinds(proto)) == (opset >= 17)


def test_other_opsets_are_refused() -> None:
    with pytest.raises(WriteError, match="opset 12 cannot be written; choose one of 13 to"):
        causal().to_onnx(12)


def test_opsets_unknown_to_the_installed_onnx_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defs, "onnx_opset_version", lambda: 21)
    with pytest.raises(
        WriteError, match=r"opset 22 is not known to .*; install a newer one, or choose one of 13"
    ):
        causal().to_onnx(22)
    assert causal().to_onnx(21).opset_import[0].version == 21


def test_weights_that_no_file_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("Conv", "x w", "a", pads=[2, 0]), node("Relu", "a", "y")]
    source = pulse.load(model(nodes, {"x": floats("x", 1, 2, 9)}, {"w": floats("w", 2, 2, 3)}, 17, {"x": 2}))
    for limit, is_refused in ((48, False), (47, True)):
        monkeypatch.setattr(walk, "MAX_MODEL_BYTES", limit)
        for write in (
            partial(to_onnx, source.pulsify(4), 17),
            partial(offline_to_onnx, source.analyse(), 17),
        ):
            refusal = pytest.raises(
                WriteError, match=r"weights take 48 bytes, and an ONNX file, .* 47; .*pulse compile"
            )
            with refusal if is_refused else nullcontext():
                write()


def test_an_operator_that_the_opset_lacks_is_refused() -> None:
    """ONNX has HardSwish since opset 14."""
    source = chain((Elementwise("hard_swish"), []))
    with pytest.raises(WriteError, match=r"opset 13 of ONNX does not allow it.*HardSwish.*try another opset"):
        source.pulsify(pulse=1).to_onnx(13)


@pytest.mark.parametrize(
    "kind", sorted(kind for kind, row in ELEMENTWISE.items() if row.arity == 1 and "not" not in kind)
)
def test_each_function_of_one_tensor_is_written(kind: str) -> None:
    """Each row of the table of functions has its operator or composition."""
    params = {
        "leaky_relu": (0.1,),
        "thresholded_relu": (0.4,),
        "elu": (0.8,),
        "celu": (0.7,),
        "swish": (1.5,),
    }
    params |= {"selu": (1.6, 1.05), "gelu": (1.0,), "hard_sigmoid": (0.3, 0.4), "round_within": (-1.0, 0.0)}
    source = chain((Elementwise("softsign"), []), (Elementwise(kind, params.get(kind, ())), []))
    with np.errstate(all="ignore"):
        assert_file_streams(source, source.pulsify(pulse=2), (3,), backends=("numpy",))


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("onesided", [False, True])
def test_a_transform_is_a_product(inverse: bool, onesided: bool) -> None:
    """Its matrix is its answers to single points."""
    source = chain((Dft(1, TDim.of(6), inverse, onesided), []))
    assert_file_streams(source, source.pulsify(pulse=2), (3,), backends=("numpy",))


def test_scales_broadcast_and_reductions_may_have_no_axes() -> None:
    """A layer norm takes the whole shape; a reduction without axes is one over an axis of size 1."""
    scale, bias = np.ones((1, 2), np.float32), floats("bias", 4, 2)
    source = chain((LayerNorm(1), [scale, bias]), (Reduce("l2", (), True), []))
    assert_file_streams(source, source.pulsify(pulse=2), (3,), backends=("numpy",))


def test_every_op_that_cannot_be_written_is_named() -> None:
    source = chain((Unwritten(), []), (Elementwise("tanh"), []), (Unwritten(), []))
    with pytest.raises(WriteError, match=r"y0 \(Unwritten\), y2 \(Unwritten\)"):
        source.pulsify(pulse=1).to_onnx()


def test_the_models_metadata_stays() -> None:
    """The file has more entries, and none of an older export."""
    pulsed = causal()
    pulsed.typed.metadata.update({"sample_rate": "16000", "author": "me", "pulse_frames": "99"})
    entries = {entry.key: entry.value for entry in to_onnx(pulsed, metadata={"author": "you"}).metadata_props}
    assert entries["sample_rate"] == "16000"
    assert entries["author"] == "you"
    assert entries["pulse_frames"] == "2"


def test_metadata_is_read_back_as_written() -> None:
    metadata = read_metadata(causal().to_onnx())
    assert StreamMetadata.parse(metadata.dump()) == metadata
    assert StreamMetadata.parse({"sample_rate": "16000"}) is None


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("pulse_format", "2", "format 2"),
        ("pulse_frames", "many", "cannot be read"),
        ("pulse_inputs", "{}", "is not a list"),
        ("pulse_inputs", '[{"nam": "x"}]', "cannot be read"),
        ("pulse_outputs", "[", "cannot be read"),
        ("pulse_states", None, "cannot be read"),
    ],
)
def test_broken_metadata_is_refused(key: str, text: str | None, message: str) -> None:
    """A LoadError says what to do."""
    entries = read_metadata(causal().to_onnx()).dump()
    if text is None:
        del entries[key]
    else:
        entries[key] = text
    with pytest.raises(LoadError, match=message):
        StreamMetadata.parse(entries)


@pytest.mark.parametrize("text", ["no base64", "AAAA"])
def test_a_broken_initial_value_is_refused(text: str) -> None:
    with pytest.raises(LoadError, match="initial value of h cannot be read"):
        StateMetadata("h", "h.next", text).value()


@pytest.mark.parametrize(
    "text",
    ["T", "3*T-2", "(T+4)/3", "(T-7)/2+1", "min(T,5)", "max(0,T-3)", "(T>=4)*2", "T-(T/2)*2", "5-T", "7"],
)
def test_lengths_are_integer_arithmetic(text: str) -> None:
    """A length and its ONNX nodes agree, below zero too, where ONNX rounds towards it."""
    from onnx.reference import ReferenceEvaluator

    scope = SymbolScope()
    dim = scope.parse(text)
    graph = GraphWriter(17)
    name = DimWriter(graph, lambda symbol: "end").length(dim)
    declared = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.INT64, []) for n in ("end", name)]
    body = onnx.helper.make_graph(
        graph.nodes, "length", declared[:1], declared[1:], list(graph.constants.values())
    )
    imports = [onnx.helper.make_opsetid("", 17)]
    evaluator = ReferenceEvaluator(onnx.helper.make_model(body, opset_imports=imports, ir_version=8))
    for end in (0, 1, 2, 3, 4, 5, 8, 9, 100):
        (value,) = evaluator.run([name], {"end": np.array(end)})
        assert value == dim.eval({scope.symbol("T"): end}), (text, end)


def test_a_length_that_may_overflow_is_refused() -> None:
    scope = SymbolScope()
    with pytest.raises(WriteError, match=r"T\*T may overflow"):
        DimWriter(GraphWriter(17), lambda symbol: "end").length(scope.parse("T*T"))


def test_a_file_without_metadata_is_not_a_stream() -> None:
    pulsed = causal()
    proto = pulsed.to_onnx()
    del proto.metadata_props[:]
    with pytest.raises(WriteError, match="no metadata of a pulsed model"):
        RuntimeProgram(pulsed, proto)


def test_another_runtime_has_snapshots_and_resets() -> None:
    """The calls of a program: step, snapshot, restore, reset."""
    pulsed = causal()
    state = RuntimeProgram(pulsed, pulsed.to_onnx()).spawn()
    first, second = floats("first", 1, 2, 2), floats("second", 1, 2, 2)
    once = state.step(first)["y"]
    saved = state.snapshot()
    twice = state.step(second)["y"]
    state.restore(saved)
    np.testing.assert_array_equal(state.step(second)["y"], twice)
    state.reset()
    np.testing.assert_array_equal(state.step(first)["y"], once)


def test_a_file_is_saved_or_refused(tmp_path: object) -> None:
    """A file, or an error that names the folder."""
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    pulsed = causal()
    pulsed.save(tmp_path / "out.onnx")
    assert onnx.load(tmp_path / "out.onnx") == pulsed.to_onnx()
    with pytest.raises(WriteError, match="cannot be written"):
        pulsed.save(tmp_path / "none" / "out.onnx")


@pytest.mark.parametrize("value", [0, -0.0, 0.5, -2])
def test_a_file_has_no_constants_that_nothing_reads(value: float) -> None:
    """The first values of states are in the metadata; a file that has them as constants too is read alike."""
    chunking = pulse.Chunking(initial={"h": value})
    proto = pulse.load(models.gru(), chunking=chunking).pulsify().to_onnx()
    assert {tensor.name for tensor in proto.graph.initializer} <= {
        name for node in proto.graph.node for name in node.input
    }
    older = onnx.ModelProto()
    older.CopyFrom(proto)
    older.graph.initializer.append(
        onnx.numpy_helper.from_array(np.full((1, 1, 3), value, np.float32), "h.initial")
    )
    x = floats("x", 1, 7, 4)
    outputs = [
        stream_whole(pulse.load(file).compile(backend="numpy"), {"x": x})["y"] for file in (proto, older)
    ]
    np.testing.assert_array_equal(*outputs)
    expected = models.stream(models.gru(), initial={"h": value}, backend="numpy")
    np.testing.assert_allclose(outputs[0], stream_whole(expected, {"x": x})["y"], 1e-5, 1e-6)
