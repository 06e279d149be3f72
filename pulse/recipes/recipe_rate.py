"""The sample rate of a recipe, from all parts that state one."""

from collections.abc import Sequence
from fractions import Fraction

from pulse.dim.slope import slope
from pulse.errors import LoadError
from pulse.facts import TypedFact
from pulse.metadata import RATE_KEY, stated_rate_hz
from pulse.models import TypedModel


class RecipeRate:
    """The rate of the audio, and its source: the recipe itself, or the first stage that has one.

    sound   whether the frames that the recipe reads are samples of sound
    """

    def __init__(self, rate_hz: int | None, sound: bool) -> None:
        self.hz, self.sound = rate_hz, sound
        self._subject = "the recipe"

    def require_rate(self, rate_hz: Fraction | int, subject: str) -> None:
        """Raise LoadError if a stage is made for another rate than the ones before it."""
        if self.hz is None and rate_hz == int(rate_hz):
            self.hz, self._subject = int(rate_hz), subject
        elif self.hz is not None and self.hz != rate_hz:
            raise LoadError(
                f"made for {_rate_text(rate_hz)} Hz, and {self._subject} has {self.hz} Hz; give both the same rate"
            )

    def require_model_rate(self, model: TypedModel, facts: Sequence[TypedFact], subject: str) -> None:
        """Check a model whose metadata states the rate of its own frames. Raises LoadError: another rate."""
        rate_hz = stated_rate_hz(model.metadata)
        if rate_hz is not None:
            inputs = [fact for fact in model.inputs.values() if symbol_rate(fact)]
            rate_in = next(map(symbol_rate, inputs), None)
            rate = next(filter(None, map(symbol_rate, facts)), None) if facts else Fraction(1)
            if rate_in and rate:
                self.require_rate(rate_hz * rate_in / rate if facts else Fraction(rate_hz), subject)

    def metadata(self) -> dict[str, str]:
        """Return the entry of the whole model."""
        return {} if self.hz is None else {RATE_KEY: str(self.hz)}


def symbol_rate(fact: TypedFact) -> Fraction | None:
    """Return the frames per unit of the only symbol in a shape; None if there is none, or several."""
    for dim in fact.shape:
        if len(dim.symbols) == 1:
            (symbol,) = dim.symbols
            return slope(dim, symbol)
    return None


def _rate_text(rate: Fraction | int) -> str:
    return f"{float(rate):g}" if Fraction(rate).denominator > 1 else str(int(rate))
