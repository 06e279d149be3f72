"""Elementwise functions that are merged into chains, whose number of inputs is limited."""

import numpy as np
import pytest

import pulse
from pulse.program.kernels.elementwise import MAX_INPUTS
from tests.noise import next_noise
from tests.pulse.model_builder import ModelBuilder


@pytest.mark.parametrize("terms", [3, 4, 5, 9, 17])
def test_a_sum_of_products_has_no_chain_of_too_many_inputs(terms: int) -> None:
    """Each term and its factor is an input: nested sums share the limit of their chain."""
    builder = ModelBuilder(**{f"x{term}": "1,3,T" for term in range(terms)})
    rng = np.random.default_rng(0)
    total = None
    for term in range(terms):
        factor = builder.constant(next_noise(rng, 1, 3, 1))
        product = builder.apply("mul", builder[f"x{term}"], factor)
        total = product if total is None else builder.apply("add", total, product)
    typed = builder.model(total)
    program = typed.pulsify(pulse=4).compile()
    counts = [getattr(row.instruction, "input_count", 0) for row in program.instructions]
    assert max(counts) <= MAX_INPUTS
    pulse.verify(typed, pulse=4, lengths=[1, 9]).require()
