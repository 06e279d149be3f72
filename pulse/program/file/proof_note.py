"""The result of a proof, as a program file stores it."""

from typing import Any

from pulse.program.file.json_object import JsonObject
from pulse.support.record import record
from pulse.support.wording import span_of


@record
class ProofNote:
    """A summary of a proof.

    outcome   ``equal``; ``not proved`` if some output is equal for trivial reasons
    verdict   the same in a sentence
    when      its date and time, in UTC
    version   the version of pulse
    of        the program that was compared with the offline model: ``the file``, or ``weights of f32`` if its weights
              are rounded
    streams   the number of streams
    shortest  the frames of the shortest stream
    longest   the frames of the longest stream
    seed      the seed of their signals
    error     the largest absolute difference from the offline model in f64
    relative  the same, relative to the largest value
    share     the largest error as a share of the tolerance in docs/proof.md: at most 1
    rounding  output -> the change caused by rounded weights
    """

    outcome: str
    verdict: str
    when: str
    version: str
    of: str
    streams: int
    shortest: int
    longest: int
    seed: int
    error: float
    relative: float
    share: float
    rounding: tuple[str, ...] = ()

    @classmethod
    def read(cls, record: JsonObject) -> "ProofNote":
        """Read a note from its fields. Raises LoadError: a value is missing or not valid."""
        values: dict[str, Any] = {
            key: record.text(key) for key in ("outcome", "verdict", "when", "version", "of")
        }
        values |= {key: record.number(key) for key in ("streams", "shortest", "longest", "seed")}
        values |= {key: record.real(key) for key in ("error", "relative", "share")}
        return cls(**values, rounding=record.texts("rounding"))

    def pairs(self) -> list[tuple[str, str]]:
        """Return labels and values for reports."""
        span = f"{self.streams} of {span_of(self.shortest, self.longest)}; seed {self.seed}"
        worst = f"at most {self.error:.3g} ({self.relative:.2g} of the largest value)"
        return [
            ("proof", f"{self.outcome}, {self.when}, pulse {self.version}, of {self.of}"),
            ("streams", span),
            ("difference", f"{worst}, {self.share:.2g} of the tolerance"),
            *(("rounded", text) for text in self.rounding),
        ]
