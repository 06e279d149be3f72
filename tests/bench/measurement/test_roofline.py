"""The roofline: the machine's rates, and a step's share of them."""

import numpy as np
import pytest

import pulse
from bench.measurement import roofline
from bench.models.gru import gru
from pulse.jit.rows.pointer import operand


def test_the_kernels_add_and_multiply() -> None:
    """The kernels run as plain Python, with every access checked."""
    memory, result = np.zeros(1024, np.uint8), np.zeros(64, np.uint8)
    floats = memory.view(np.float32)
    floats[:] = np.arange(256)
    row = [0, 0, operand(0, 0), operand(1, 0), 256, 2]
    roofline.READ.python(row, [memory, result])
    assert result.view(np.float32).sum() == 2 * floats.sum()
    floats[:2] = 0.5, 1.0
    roofline.MULTIPLY_ADD.python([*row[:4], 3], [memory, result])
    chains = [1.0 + chain for chain in range(12)]
    for _ in range(3):
        chains = [0.5 * chain + 1.0 for chain in chains]
    np.testing.assert_allclose(result.view(np.float32), sum(chains), 1e-6)


def test_this_machine_is_measured_at_the_given_sizes() -> None:
    machine = roofline.measured_machine([1 << 14, 1 << 16], 1 << 18, 100)
    assert [size for size, _ in machine.bandwidth] == [1 << 14, 1 << 16]
    assert all(rate > 0 for _, rate in machine.bandwidth)
    assert machine.multiply_adds_per_s > 0


@pytest.mark.parametrize(("size", "expected"), [(100, 4096), (4096, 4096), (5000, 5120)])
def test_a_reading_has_whole_blocks_and_passes(size: int, expected: int) -> None:
    assert roofline.BandwidthProbe(size, 4096).bytes == expected


def test_a_step_takes_the_longer_of_its_bytes_and_its_products() -> None:
    program = pulse.stream(gru(16, 1), pulse=1)
    bounds = roofline.roofline(program, 50e9, 40e9)
    assert bounds.multiply_adds == 3 * 16 * (16 + 16) + 16 * 32
    assert 4 * bounds.multiply_adds < bounds.bytes < 16 * bounds.multiply_adds
    assert bounds.working_set >= program.weights.size
    assert bounds.min_us == max(bounds.memory_us, bounds.arithmetic_us)
    assert bounds.memory_us == pytest.approx(bounds.bytes / 50e9 * 1e6)
    assert bounds.bound == "memory"
