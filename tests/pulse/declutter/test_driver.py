"""The list of rewrites, and the ways to run it."""

import pytest

from pulse.declutter import DECLUTTER, Rewrite, declutter, declutter_and_count
from pulse.errors import PulseError
from pulse.graph import OutletId
from pulse.models import TypedModel
from pulse.ops.elementwise import Elementwise
from pulse.patch import Patch
from pulse.typed import TypedGraph
from tests.pulse.declutter.decluttered_models import SmallModel, ops


def ten_ones() -> TypedModel:
    small = SmallModel()
    outlet = small.x
    for number in range(10):
        outlet = small.add(f"n{number}", Elementwise("mul"), outlet, 1.0)
    return small.model(outlet)


def test_every_rewrite_has_its_own_name_and_a_reason() -> None:
    assert len({rewrite.name for rewrite in DECLUTTER}) == len(DECLUTTER)
    assert all(rewrite.reason and "\n" not in rewrite.reason for rewrite in DECLUTTER)


def test_the_given_model_is_not_changed() -> None:
    model = ten_ones()
    assert ops(declutter(model)) == []
    assert ops(model) == ["mul"] * 10


@pytest.mark.parametrize("patches", range(12))
def test_declutter_stops_after_the_given_number_of_patches(patches: int) -> None:
    model = ten_ones()
    rewrites = [rewrite for rewrite in DECLUTTER if rewrite.name == "neutral_operand"]
    result, fired = declutter_and_count(model, rewrites, stop_after=patches)
    assert fired.total() == min(patches, 10)
    assert ops(result) == ["mul"] * (10 - min(patches, 10))


def test_unused_inputs_stay() -> None:
    small = SmallModel()
    small.source("unused", "3,f32")
    assert list(declutter(small.model(small.x)).inputs) == ["x", "unused"]


def test_a_rewrite_that_would_change_a_shape_is_refused() -> None:
    def wrong(graph: TypedGraph, node, op) -> Patch | None:
        if op != Elementwise("neg"):
            return None
        patch = Patch(graph)
        other = graph.find("other")
        patch.shunt(OutletId(node.id), patch.tap(other))
        return patch

    small = SmallModel()
    small.source("other", "2,f32")
    model = small.model(small.add("y", Elementwise("neg"), small.x))
    with pytest.raises(PulseError, match=r"2,f32 in place of y: 1,4,T,f32"):
        declutter(model, [Rewrite("wrong", "none", wrong)])


def test_an_op_that_changes_its_facts_is_caught() -> None:
    class Fickle(Elementwise):
        calls = 0

        def facts(self, inputs):
            Fickle.calls += 1
            if Fickle.calls > 1:
                return [type(inputs[0])(inputs[0].dtype, inputs[0].shape[1:])]
            return super().facts(inputs)

    def swap(graph: TypedGraph, node, op) -> Patch | None:
        if op.name != "neg" or isinstance(op, Fickle):
            return None
        patch = Patch(graph)
        patch.shunt(OutletId(node.id), patch.wire("y", Fickle("neg"), [patch.tap(node.inputs[0])])[0])
        return patch

    small = SmallModel()
    model = small.model(small.add("y", Elementwise("neg"), small.x))
    with pytest.raises(PulseError, match=r"after swap, y \(neg\) is 4,T,f32, not 1,4,T,f32"):
        declutter(model, [Rewrite("swap", "none", swap)])
