"""DetectorChoice: the detector for an output, as given on a command line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from inspect import Parameter, signature
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pulse.errors import InputError
from pulse.interface import Port
from pulse.support.naming import require_name
from pulse.support.record import record
from pulse.support.value_types import describe_type
from pulse.support.wording import spell
from streaming.events.argmax import Argmax
from streaming.events.ctc import Ctc
from streaming.events.detector import Detector
from streaming.events.frame_clock import FrameClock
from streaming.events.segments import Segments
from streaming.events.triggers import Triggers

DETECTORS: Mapping[str, Callable[..., Detector[Any]]] = MappingProxyType(
    {
        "segments": Segments,
        "silero": Segments.silero,
        "fireredvad": Segments.fireredvad,
        "triggers": Triggers,
        "ctc": Ctc,
        "argmax": Argmax,
    }
)
BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@record
class DetectorChoice:
    """A detector and its parameters, as text.

    kind      a name in ``DETECTORS``
    settings  values of parameters, such as threshold: 0.5; items of a list are separated by commas
    Raises    InputError: no such detector or parameter, a missing parameter, or an invalid value
    """

    kind: str
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self._make()

    @classmethod
    def parse(cls, kind: str, settings: Sequence[str]) -> "DetectorChoice":
        """Parse settings written as ``name=value``. Raises InputError: a setting has no value, or is given twice."""
        pairs: dict[str, str] = {}
        for text in settings:
            name, equals, value = text.partition("=")
            if not equals:
                raise InputError(f"{spell('event', text)}: write a parameter as NAME=VALUE")
            if name in pairs:
                raise InputError(f"{spell('event', text)}: {name} is given twice")
            pairs[name] = value
        return cls(kind, pairs)

    def detector(self, clock: FrameClock) -> Detector[Any]:
        """Create a detector for an output with this clock.

        Raises InputError: no such detector or parameter, or a value is not valid
        """
        return self._make()(clock)

    def _make(self) -> Callable[[FrameClock], Detector[Any]]:
        """Check the parameters and return the function that creates the detector."""
        make = DETECTORS[require_name("detector", self.kind, DETECTORS, InputError, spell("events"))]
        parameters = {
            name: parameter for name, parameter in signature(make).parameters.items() if name != "clock"
        }
        for name in self.settings:
            require_name("parameter", name, parameters, InputError, self.kind)
        for name, parameter in parameters.items():
            if parameter.default is Parameter.empty and name not in self.settings:
                raise InputError(f"{self.kind}: needs {name}; give {spell('event', f'{name}=VALUE')}")
        values = {
            name: _value(name, text, parameters[name].annotation) for name, text in self.settings.items()
        }
        return lambda clock: make(clock, **values)

    def of_port(self, port: Port, rate_hz: float | None) -> Detector[Any]:
        """Create a detector for an output; ``rate_hz`` is in frames of the model's symbol.

        Raises InputError: the rate is unknown, or as ``detector``
        """
        if rate_hz is None:
            raise InputError(
                f"{port.name}: events have times; give the model's samples or frames per second with "
                f"{spell('rate', 16000)}"
            )
        return self.detector(FrameClock.of_port(port, rate_hz))


def _value(name: str, text: str, value_type: Any) -> Any:
    """Parse the value of a parameter. Raises InputError: the text is not of the type."""
    try:
        if value_type is bool:
            return BOOLEANS[text.lower()]
        if value_type in (float, float | None):
            return float(text)
        if value_type in (int, int | None):
            return int(text)
    except (ValueError, KeyError):
        expected = "yes or no" if value_type is bool else describe_type(value_type)
        raise InputError(f"{name}={text}: must be {expected}") from None
    if value_type == Sequence[str]:
        return tuple(part.strip() for part in text.split(","))
    return Path(text) if value_type == str | Path | Sequence[str] else text
