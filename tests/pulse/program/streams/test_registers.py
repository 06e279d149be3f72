"""Registers, the length of the stream as a value, and outputs that wait for another wire."""

from dataclasses import replace

import numpy as np
import pytest

from pulse.dim import TDim
from pulse.errors import PulsifyError
from pulse.facts import PulsedFact
from pulse.interface import AwaitedWire
from pulse.models import PulsedModel
from pulse.ops.elementwise import Elementwise
from pulse.ops.time_length import StreamEnd
from pulse.program.compiler import compile_model
from pulse.support.bounds import FAR_END
from tests.backends import BACKENDS
from tests.noise import normal_noise
from tests.pulse.chunks import models

F = np.float32


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


def chunk_model() -> PulsedModel:
    """A filter in chunks of 8, written and read again, with an explicit state."""
    import pulse

    chunked = pulse.load(models.cache_of_sound()).pulsify()
    return pulse.load(chunked.to_onnx()).analyse().pulsify()


def test_the_length_of_a_stream_is_known_from_the_flush_on(backend: str) -> None:
    """Before, it is ``FAR_END``, also after a snapshot from before the flush is restored."""
    model = chunk_model()
    graph = model.graph
    scalar = PulsedFact(np.dtype(np.int64), ())
    (end,) = graph.add("end", StreamEnd(TDim.of(model.symbol)), (), [scalar])
    (twice,) = graph.add("twice", Elementwise("add"), [end, end], [scalar])
    graph.set_outputs([*graph.outputs, end, twice], [*graph.output_names, "end", "twice"])
    ports = tuple(
        replace(model.outputs[0], name=name, axis=None, shape=(), dtype=np.dtype(np.int64))
        for name in ("end", "twice")
    )
    state = compile_model(replace(model, outputs=(*model.outputs, *ports)), backend).spawn()
    result = state.step(np.zeros((1, 8), F))
    assert (int(result["end"]), int(result["twice"])) == (FAR_END, 2 * FAR_END)
    before = state.snapshot()
    (result,) = state.flush(np.zeros((1, 3), F))
    assert (int(result["end"]), int(result["twice"])) == (11, 22)
    state.restore(before)
    assert int(state.step(np.zeros((1, 8), F))["end"]) == FAR_END


def test_a_flush_lasts_until_the_awaited_wire_has_ended(backend: str) -> None:
    model = chunk_model()
    frames = TDim.of(model.symbol)
    late = replace(model, extra_awaited_wires=(AwaitedWire(8, 20, frames),))
    assert [compile_model(pulsed, backend).steps(9) for pulsed in (model, late)] == [2, 4]
    assert len(compile_model(late, backend).spawn().flush(np.zeros((1, 3), F))) == 3


def test_each_lane_has_its_own_registers() -> None:
    program = compile_model(chunk_model(), "numba")
    lanes = program.spawn_many(3)
    alone = [program.spawn() for _ in range(3)]
    for number in range(4):
        x = normal_noise(3, 1, 8, seed=number)
        together = lanes.step(x)["y"]
        for lane, state in enumerate(alone):
            np.testing.assert_allclose(together[lane], state.step(x[lane])["y"], 1e-6, 1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"initial": np.zeros((1, 5), F)}, "register cache is read as 1,4,f32 and initially 1,5,f32"),
        ({"initial": np.zeros((1, 4))}, "initially 1,4,f64"),
        ({"write": "x"}, "written 1,8,f32"),
        ({"read": "x"}, "register cache: it must be read from a source that is not an input"),
    ],
)
def test_registers_that_do_not_fit_are_refused(change: dict[str, object], message: str) -> None:
    model = chunk_model()
    parts = {
        name: model.graph.find("x") if isinstance(value, str) else value for name, value in change.items()
    }
    cache = next(register for register in model.registers if register.name == "cache")
    with pytest.raises(PulsifyError, match=message):
        replace(model, registers=(replace(cache, **parts),))
    with pytest.raises(PulsifyError, match="another register has the same source"):
        replace(model, registers=model.registers * 2)
