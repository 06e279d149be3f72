"""``Rounding``: the forms of a program's weights and activations. Commands import it at their start."""

from typing import TYPE_CHECKING

from pulse.errors import CompileError
from pulse.support.record import record
from pulse.support.wording import spell

if TYPE_CHECKING:
    from pulse.ops.weight_units import RowForm

FORMS = ("f32", "bf16", "int8")
_CHOICE = f"choose {', '.join(FORMS[:-1])} or {FORMS[-1]}"


@record
class Rounding:
    """How a program rounds weights, and the activations that they are multiplied by.

    weights      the form in which they are stored, see ``pulse.program.weights``: ``bf16`` or ``int8`` if they do not
                 fit the caches, else ``f32``
    activations  ``f32``, or the form of the weights, see ``pulse.program.activation_rounding``

    None stands for ``f32``, or for the form of a program file.
    """

    weights: str | None = None
    activations: str | None = None

    def resolve(self) -> "tuple[str, RowForm | None]":
        """Return the form of the weights, and that of rounded activations; None for f32.

        Raises CompileError: a form is unknown, or that of the activations is not the weights'
        """
        weights, activations = check_form(self.weights or "f32"), self.activations or "f32"
        if activations not in FORMS:
            raise CompileError(f"no {activations!r} activations; {_CHOICE}")
        if activations == "f32":
            return weights, None
        if activations != weights:
            raise CompileError(
                f"{spell('activations', activations)} needs {spell('weights', activations)}, got {weights} weights"
            )
        return weights, activations


def check_form(form: str) -> str:
    """Return the form of weights. Raises CompileError if it is unknown."""
    if form not in FORMS:
        raise CompileError(f"unknown weight form {form!r}; {_CHOICE}")
    return form
