"""The sample rate of a recipe, from all parts that state one."""

from collections.abc import Sequence
from fractions import Fraction

from pulse.dim.slope import slope
from pulse.errors import LoadError
from pulse.facts import TypedFact
from pulse.metadata import RATE_KEY, stated_rate_hz
from pulse.models import TypedModel


class Rates:
    """The rate of the sound, and its source: the recipe itself, or the first stage that has one.

    sound   whether the frames that the recipe reads are samples of sound
    """

    def __init__(self, rate_hz: int | None, sound: bool) -> None:
        self.hz, self.sound = rate_hz, sound
        self._subject = "the recipe"

    def agree(self, rate_hz: Fraction | int, subject: str) -> None:
        """Raise LoadError if a stage is made for another rate than the ones before it."""
        if self.hz is None and rate_hz == int(rate_hz):
            self.hz, self._subject = int(rate_hz), subject
        elif self.hz is not None and self.hz != rate_hz:
            raise LoadError(
                f"made for {_text(rate_hz)} Hz, and {self._subject} has {self.hz} Hz; give both the same rate"
            )

    def agree_model(self, model: TypedModel, facts: Sequence[TypedFact], subject: str) -> None:
        """Check a model whose metadata states the rate of its own frames. Raises LoadError: another rate."""
        rate_hz = stated_rate_hz(model.metadata)
        if rate_hz is not None:
            inputs = [fact for fact in model.inputs.values() if growth(fact)]
            growth_in = next(map(growth, inputs), None)
            rate = next(filter(None, map(growth, facts)), None) if facts else Fraction(1)
            if growth_in and rate:
                self.agree(rate_hz * growth_in / rate if facts else Fraction(rate_hz), subject)

    def metadata(self) -> dict[str, str]:
        """Return the entry of the whole model."""
        return {} if self.hz is None else {RATE_KEY: str(self.hz)}


def growth(fact: TypedFact) -> Fraction | None:
    """Return frames for each of the one symbol that an axis depends on; None if there is none, or several."""
    for dim in fact.shape:
        if len(dim.symbols) == 1:
            (symbol,) = dim.symbols
            return slope(dim, symbol)
    return None


def _text(rate: Fraction | int) -> str:
    return f"{float(rate):g}" if Fraction(rate).denominator > 1 else str(int(rate))
