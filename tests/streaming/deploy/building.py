"""Helpers that compile small models and build their libraries."""

from pathlib import Path

from pulse.c_library.library_contents import library_contents
from pulse.c_library.vector import make_vector
from pulse.jit.levels import LEVELS, TARGETS
from pulse.models import TypedModel
from pulse.program.compiler import compile_model
from pulse.program.native.native_program import NativeProgram
from pulse.proof.oracle import pulsed_oracle
from pulse.pulsify.driver import pulsify
from streaming.deploy.built_library import BuiltLibrary, build_library

PULSE = 16
HERE = next((level.name for level in LEVELS.values() if not level.missing_features), None)
"""The level that libraries are built for to run here."""


def compile_program(model: TypedModel, pulse: int | None = None) -> NativeProgram:
    program = compile_model(pulsify(model.declutter(), pulse=pulse), "numba")
    assert isinstance(program, NativeProgram)
    return program


def build(
    program: NativeProgram,
    folder: Path,
    target: str | None = None,
    name: str = "small",
    rate_hz: int | None = None,
    plugins: tuple[str, ...] = (),
    external_weights: bool = False,
) -> BuiltLibrary:
    """Build the library of a program, for a level of this machine or another target."""
    network = program.network
    contents = library_contents(program, name, name, rate_hz, external_weights)
    vector = make_vector(program, (network, pulsed_oracle(network)))
    return build_library(contents, TARGETS[target or HERE or ""], vector, folder, plugins=plugins)
