"""The bench of weights and activations in fewer bits, on a small model."""

import pytest

from bench.models.entry import Entry
from tests.pulse.program.weight_models import stack

rounding = pytest.importorskip("bench.rounding", exc_type=ImportError)


def test_each_pair_of_types_is_timed_and_its_loss_reported() -> None:
    timed = rounding.rounding_time(Entry("matmul", "two matrices", 2, lambda: stack("matmul")), rounds=2)
    names = [rounding.name_of(*form) for form in rounding.TYPES]
    assert names == ["f32", "bf16", "bf16, bf16", "int8", "int8, int8"]
    assert list(timed.us) == names
    assert all(us > 0 for us in timed.us.values())
    assert timed.pulse == 2
    assert timed.gain.lowest <= timed.gain.median <= timed.gain.highest
    losses = [timed.losses_db[name] for name in names[1:]]
    assert losses[0] > losses[1] > losses[2] > losses[3] > 20
