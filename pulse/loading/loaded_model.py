"""A model of any source, as ``pulse.load`` returns it."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Unpack

from pulse.chunks.chunking import DETECT_ALL, CallPlan, Chunking
from pulse.errors import CompileError, LoadError
from pulse.metadata import is_exported
from pulse.program.file.stored_program import StoredProgram
from pulse.program.program import Program
from pulse.support.collector import fewer_collections
from pulse.support.record import record
from pulse.support.wording import count_of, spell

if TYPE_CHECKING:
    from pulse.loading.resolution import ResolvedModel
    from pulse.models import Model, PulsedModel, TypedModel
    from pulse.program.backends.registry import Prepare
    from pulse.proof.original import Original
    from pulse.pulsify.driver import PulsifyOptions


@record(eq=False)
class LoadedModel:
    """A model, and the options of the user. How it streams is resolved on first use.

    A program file runs without the modules that analyse models: these are imported only for a model.

    source_model  the model as it was read: facts may be partial; recipes and Python objects may be analysed further
    outputs, symbol, chunking  see ``pulse.load``
    original  what the model was exported from, which a proof then runs too
    """

    source_model: "Model | TypedModel | PulsedModel | StoredProgram" = field(repr=False)
    outputs: Sequence[str] | None = None
    symbol: str | None = None
    chunking: Chunking = DETECT_ALL
    original: "Original | None" = field(default=None, repr=False)

    @classmethod
    def of_program(
        cls, program: StoredProgram, chunking: Chunking | None = None, **reading_options: object
    ) -> "LoadedModel":
        """Return the program of a file. Raises LoadError: an option for reading its model is given."""
        fixed = [option for option, value in reading_options.items() if value]
        fixed += [option for option in (chunking or DETECT_ALL).given_options if option != "pulse"]
        if fixed:
            raise LoadError(
                f"{program.model.title}: is a program; the options for reading its model are fixed: "
                f"omit {', '.join(map(spell, fixed))}, or compile the model with that"
            )
        return cls(program)

    @property
    def title(self) -> str:
        """The model's name."""
        model = self.source_model
        return model.model.title if isinstance(model, StoredProgram) else model.title

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata of the file."""
        return self.source_model.metadata

    @property
    def program(self) -> StoredProgram | None:
        """The program of a program file, which has no model; None for other sources."""
        return self.source_model if isinstance(self.source_model, StoredProgram) else None

    @property
    def model(self) -> "Model":
        """The file's own nodes. Raises LoadError: the source is not a file with nodes."""
        from pulse.models import Model

        if isinstance(self.source_model, Model):
            return self.source_model
        if self.program is not None:
            raise self.program.no_model_error()
        raise LoadError(f"{self.title}: has no file nodes; the typed model is its first stage")

    @cached_property
    def resolution(self) -> "ResolvedModel":
        """How the model streams. Raises PulseError: it does not, or the file is a program."""
        if isinstance(self.source_model, StoredProgram):
            raise self.source_model.no_model_error()
        from pulse.loading.resolution import resolve

        return resolve(self.source_model, self.chunking, self.symbol, self.outputs)

    @property
    def chunks(self) -> CallPlan | None:
        """How a model of chunks is called; None if it is offline."""
        return None if self.program is not None else self.resolution.chunks

    @property
    def sizes(self) -> Mapping[str, int]:
        """The values of the file's symbols other than time: ``{"batch": 1}``."""
        return self.resolution.sizes if self.program is None else self.program.model.sizes

    @property
    def decluttered_model(self) -> "TypedModel":
        """``analyse()``, decluttered."""
        return self.resolution.decluttered_model

    @property
    def defines_pulse(self) -> bool:
        """Whether the model itself determines the pulse: it takes chunks, or is in pulses."""
        if self.program is not None or is_exported(self.metadata):
            return True
        return self.chunks is not None or self.resolution.pulsed is not None

    def analyse(self, pulse: int | None = None) -> "TypedModel":
        """Return the offline model with every dtype and shape known; for a model of chunks, the loop over its calls.

        ``model.analyse()`` is the file alone: for a model of chunks, one call with all its symbols.

        pulse  frames of a chunk, unless the model or the user determines them
        """
        return self.with_pulse(pulse).resolution.offline

    def with_pulse(self, pulse: int | None) -> "LoadedModel":
        """Return the model with chunks of this many frames, unless their length is fixed.

        Raises PulsifyError: the chunks do not fit the model
        """
        if pulse is None or self.chunking.pulse is not None or not self._leaves_pulse_open:
            return self
        return replace(self, chunking=replace(self.chunking, pulse=pulse))

    @cached_property
    def _leaves_pulse_open(self) -> bool:
        from pulse.loading.sizes import leaves_pulse_open
        from pulse.models import Model

        model = self.source_model
        if not isinstance(model, Model) or is_exported(model.metadata):
            return False
        return leaves_pulse_open(model, self.chunking, self.symbol)

    def pulsify(self, pulse: int | None = None, **options: "Unpack[PulsifyOptions]") -> "PulsedModel":
        """Return the model in pulses; of whole chunks, one by default, if it takes chunks.

        pulse    frames of the symbol in each step; default: the smallest possible
        options  ``min_pulse``, ``align``, ``max_context``, see ``pulse.pulsify.driver.PulsifyOptions``; a model that
                 defines its pulse keeps it
        Raises   PulseError: it cannot stream, or it has another pulse
        """
        return self.with_pulse(pulse).resolution.pulsify(pulse, **options)

    @fewer_collections()
    def compile(
        self,
        pulse: int | None = None,
        *,
        backend: str = "numba",
        weights: str | None = None,
        prepare: "Prepare | None" = None,
        activations: str | None = None,
        **options: "Unpack[PulsifyOptions]",
    ) -> Program:
        """Compile the model to a program; see ``pulsify`` and ``PulsedModel.compile`` for the arguments.

        A program file returns its program. Raises PulseError: also if it was compiled with other arguments
        """
        program = self.program
        if program is None:
            model = self.pulsify(pulse, **options)
            return model.compile(backend, weights=weights, activations=activations, prepare=prepare)
        options.pop("min_pulse", None)  # a program keeps its pulse
        arguments = {
            "pulse": (pulse, program.pulse),
            "backend": (backend, program.backend),
            "weights": (weights, program.form),
            "activations": (activations, program.activations),
            **{name: (value, False) for name, value in options.items()},
        }
        other = [
            spell(name, value) for name, (value, fixed) in arguments.items() if value not in (None, fixed)
        ]
        if other:
            rows = "" if program.activations == "f32" else f" and {program.activations} activations"
            raise CompileError(
                f"{self.title}: is a program with pulses of {count_of(program.pulse, 'frame')} and {program.form} "
                "weights"
                f"{rows}; omit {', '.join(other)}, or compile the model with that"
            )
        if prepare is not None:
            prepare(program.kernel_names)
        return program

    def detections(self) -> list[tuple[str, str]]:
        """Return the properties that pulse detected by itself, as pairs of title and text."""
        if self.program is not None:
            return list(self.program.detected)
        lines = [] if self.chunks is None else self.chunks.lines()
        reason = "" if self.chunks is not None else ", since its name counts streams and another dim is time"
        return lines + [("size", f"{name} = {size}{reason}") for name, size in self.sizes.items()]
