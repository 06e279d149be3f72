"""Build the library of an opened model."""

from pathlib import Path

from pulse.c_library.library_contents import library_contents
from pulse.c_library.vector import make_vector
from pulse.errors import InputError
from pulse.jit.levels import LEVELS, TARGETS, Level
from pulse.program.backends.weight_rounding import round_offline
from pulse.program.native.native_program import NativeProgram
from pulse.program.program import Program
from pulse.proof.oracle import pulsed_oracle
from pulse.rounding import Rounding
from pulse.support.naming import require_name
from pulse.support.wording import spell
from streaming.deploy.built_library import BuiltLibrary, build_library
from streaming.opening.opened_model import OpenedModel


def find_target(name: str | None) -> Level:
    """Return the target of that name; by default the best level that this machine supports.

    Raises InputError: no such target, or this machine supports no level
    """
    if name is None:
        target = next((level for level in LEVELS.values() if not level.missing_features), None)
        if target is None:
            raise InputError(
                f"{spell('target')}: this machine has none of the levels; choose one of {', '.join(TARGETS)}"
            )
        return target
    return TARGETS[require_name("target", name, TARGETS, InputError, spell("target"))]


def build_model(
    opened: OpenedModel,
    program: Program,
    name: str,
    target: Level,
    folder: Path,
    *,
    checks: bool,
    plugins: tuple[str, ...] = (),
    external_weights: bool = False,
) -> BuiltLibrary:
    """Build the library of a program; the offline model, if it is known, judges its test vector.

    external_weights  whether the weights are a file next to the library
    Raises PulseError: the program needs Python, or it cannot be compiled, linked or written, or outputs wrong frames
    """
    rate = None if opened.rate_from == "default" else opened.rate_hz
    contents = library_contents(program, name, opened.title, rate, external_weights)
    offline = None
    if isinstance(program, NativeProgram):
        network = program.network
        if program.activations == "f32":
            original = opened.model.analyse(program.pulse)
        else:  # the effect of rounding on rounded rows if the library runs on another processor
            original = round_offline(network.typed, Rounding(program.form, program.activations))
        offline = network, pulsed_oracle(network, original)
    return build_library(contents, target, make_vector(program, offline), folder, checks, plugins)
