"""``Rounding``: the forms of a program's weights and activations. Commands import it at their start."""

from typing import TYPE_CHECKING

from pulse.errors import CompileError
from pulse.support.record import record
from pulse.support.wording import spell

if TYPE_CHECKING:
    from pulse.ops.weight_units import ActivationForm

FORMS = ("f32", "bf16", "int8")
_CHOICE = f"choose {', '.join(FORMS[:-1])} or {FORMS[-1]}"


@record
class Rounding:
    """How a program rounds weights, and the activations that they are multiplied by.

    weights      the form in which they are stored, see ``pulse.program.weights``: ``f32``, ``bf16`` or ``int8``; the
                 last two make a step faster if f32 weights do not fit the caches
    activations  ``f32``, or the form of the weights, see ``pulse.program.activation_rounding``

    None stands for ``f32``, or for the form of a program file.
    """

    weights: str | None = None
    activations: str | None = None

    @property
    def form(self) -> str:
        """The form of the weights."""
        return self.weights or "f32"

    @property
    def activation_form(self) -> "ActivationForm | None":
        """The form of rounded activations; None: they stay f32."""
        return self.activations if self.activations in ("bf16", "int8") else None

    def check(self) -> None:
        """Raises CompileError: a form is unknown, or that of the activations is not the weights'."""
        if self.form not in FORMS:
            raise CompileError(f"unknown weight form {self.form!r}; {_CHOICE}")
        if self.activations not in (None, *FORMS):
            raise CompileError(f"no {self.activations!r} activations; {_CHOICE}")
        if self.activation_form not in (None, self.form):
            form = self.activation_form
            raise CompileError(
                f"{spell('activations', form)} needs {spell('weights', form)}, got {self.form} weights"
            )
