"""The constants of vector registers: those of this processor, and those of levels."""

import importlib
from collections.abc import Iterator

import pytest

from pulse.jit import levels, registers


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    monkeypatch.undo()
    levels.named_level.cache_clear()
    importlib.reload(registers)


@pytest.mark.parametrize(
    ("level", "eight", "whole"),
    [
        ("x86-64-v4-avxvnni", True, True),
        ("x86-64-v4-bf16", True, False),
        ("x86-64-v4-vnni", True, True),
        ("x86-64-v4", True, True),
        ("x86-64-v3", False, False),
        ("aarch64", False, False),
    ],
)
def test_a_level_decides_the_registers(
    target: pytest.MonkeyPatch, level: str, eight: bool, whole: bool
) -> None:
    target.setenv("PULSE_LEVEL", level)
    levels.named_level.cache_clear()
    importlib.reload(registers)
    assert (eight, whole) == (registers.HAS_AVX512, registers.HAS_FULL_WIDTH_AVX512)


@pytest.mark.parametrize(
    ("flags", "eight", "whole"),
    [
        pytest.param({"avx512f", "avx512_bf16", "avx_vnni"}, True, True, id="Zen 5"),
        pytest.param({"avx512f", "avx512_bf16"}, True, False, id="Zen 4"),
        pytest.param({"avx512f", "avx512_vnni"}, True, True, id="Ice Lake"),
        pytest.param({"avx2", "avx_vnni"}, False, False, id="Alder Lake"),
    ],
)
def test_without_a_level_the_processor_decides(
    target: pytest.MonkeyPatch, flags: set[str], eight: bool, whole: bool
) -> None:
    target.setattr(registers.sys, "platform", "linux")
    target.delenv("PULSE_LEVEL", raising=False)
    levels.named_level.cache_clear()
    target.setattr(levels, "processor_flags", lambda: frozenset(flags))
    importlib.reload(registers)
    assert (eight, whole) == (registers.HAS_AVX512, registers.HAS_FULL_WIDTH_AVX512)
