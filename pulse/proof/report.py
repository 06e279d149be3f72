"""The result of a proof: one object for the terminal, for JSON and for Python."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from pulse.errors import DivergenceError, NotProvedError
from pulse.facts import Array
from pulse.ops.arithmetic import is_floating
from pulse.proof.trial_signals import SIGNALS, InputDomain, Signal
from pulse.proof.trials import Trials
from pulse.pulsify.network import PulsedNetwork
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, Text
from pulse.support.wording import count_of, span_of, spell

ProofOutcome = Literal["equal", "diverged", "not proved"]

FINITE_ADVICE = (
    "limit what a logarithm, a root or a quotient reads inside the model, as in log(clamp(x, min=1e-6)), so that it "
    "returns numbers for every input"
)
"""Advice for a model that returns NaN or infinity."""


@record
class Divergence:
    """The first wire, in the order of the graph, whose stream differs from offline.

    wire                        name of the wire
    op                          the operation that makes it
    length                      frames of the symbol in the stream
    signal                      kind of the stream's input
    backend                     the backend that ran it
    frame                       frame of the wire; None if there are no values to compare, as ``reason`` says
    offline, streamed, allowed  the value in f64, the value of the stream, and the tolerance
    reason                      why there is nothing to compare; empty if values differ
    """

    wire: str
    op: str
    length: int
    signal: Signal | Literal["the example"]
    backend: str
    frame: int | None = None
    offline: float = 0.0
    streamed: float = 0.0
    allowed: float = 0.0
    reason: str = ""

    def __str__(self) -> str:
        location = f"a stream of {count_of(self.length, 'frame')} of {self.signal} ({self.backend})"
        if self.frame is None:
            return f"{self.wire} ({self.op}) diverges in {location}: {self.reason}"
        if not np.isfinite(self.offline):
            return (
                f"the model itself returns {self.offline:.6g} in {self.wire} ({self.op}) at frame {self.frame} of "
                f"{location}, so a stream cannot be compared with it: the stream has {self.streamed:.6g}, "
                "perhaps because a product with zero weights or a mask spreads NaN and infinity to more frames; "
                f"{FINITE_ADVICE}"
            )
        return (
            f"{self.wire} ({self.op}) diverges at frame {self.frame} of {location}: offline {self.offline:.6g}, "
            f"streamed {self.streamed:.6g}, tolerance {self.allowed:.2g}"
        )


@record
class TrialRecord:
    """One stream that was compared, and by which backends."""

    length: int
    signal: Signal
    backends: tuple[str, ...]


@record
class Coverage:
    """The frames and values of an output that were compared.

    name              name of the output
    frames            compared frames of all streams together; comparisons of an output that does not stream
    values, finite    values in them, and how many of these are finite numbers
    minimum, maximum  extremes of the finite values
    reads             whether it is computed from an input at all
    moved             whether other inputs of the same length gave other values
    repeated          whether there were several inputs of the same length
    """

    name: str
    frames: int = 0
    values: int = 0
    finite: int = 0
    minimum: float = float("inf")
    maximum: float = float("-inf")
    reads: bool = True
    moved: bool = False
    repeated: bool = False

    @property
    def reason_not_proved(self) -> str:
        """Why equality proves nothing about this output; empty if it does."""
        if not self.values:
            return "it has no frames"
        if not self.finite:
            return f"no value is a finite number, because the model itself returns NaN or infinity; {FINITE_ADVICE}"
        if self.reads and not self.repeated:
            return (
                "only one input of each length was tried, which does not show that it depends on the input; "
                f"{spell('long', True)} tries more"
            )
        if self.reads and not self.moved:
            constant = (
                f"it is always {self.minimum:.6g}"
                if self.minimum == self.maximum
                else "it is always the same"
            )
            return f"{constant}, whatever the input"
        return ""

    def __str__(self) -> str:
        if not self.values:
            return "no frames"
        values = f"{count_of(self.values, 'value', form=',')} of {count_of(self.frames, 'frame', form=',')}"
        if not self.finite:
            return f"{values}, none finite"
        share = f"{self.finite / self.values:.1%} finite (the model itself returns NaN or infinity for the others)"
        finite = "all finite" if self.finite == self.values else share
        dependence = "depends on the input" if self.moved else "does not depend on the input"
        if self.reads and not self.repeated:
            dependence = "of one input of each length"
        return f"{values}, {self.minimum:.4g} … {self.maximum:.4g}, {finite}, {dependence}"

    def add(self, values: Array, frames: int) -> "Coverage":
        """Return the coverage including the offline values of one more stream."""
        wide = values.astype(np.float64)
        numbers = wide[np.isfinite(wide)] if is_floating(values.dtype) else wide.ravel()
        return replace(
            self,
            frames=self.frames + frames,
            values=self.values + values.size,
            finite=self.finite + numbers.size,
            minimum=min(self.minimum, float(numbers.min(initial=np.inf))),
            maximum=max(self.maximum, float(numbers.max(initial=-np.inf))),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the values of the report, for JSON."""
        return {
            "name": self.name,
            "frames": self.frames,
            "values": self.values,
            "finite": self.finite,
            "minimum": self.minimum if self.finite else None,
            "maximum": self.maximum if self.finite else None,
            "moved": self.moved,
            "proved": not self.reason_not_proved,
            "missing": self.reason_not_proved,
        }


@record
class LargestError:
    """The largest differences from the f64 run, of all outputs.

    error     absolute difference
    relative  the same, relative to the largest value of the output in that stream
    share     largest part of the tolerance that is used; above 1 is a divergence. The third part of the rule of
              tolerance is computed only as far as needed, so shares up to 1 are approximate
    """

    error: float = 0.0
    relative: float = 0.0
    share: float = 0.0

    def join(self, other: "LargestError") -> "LargestError":
        """Return the elementwise maximum of both."""
        return LargestError(
            max(self.error, other.error), max(self.relative, other.relative), max(self.share, other.share)
        )


@record
class OriginalRecord:
    """The comparison of the stream with what the model was exported from, on inputs like its example.

    title    name of the original
    lengths  frames of the streams; empty if the original takes no tried length, as ``refusal`` says
    error    the largest absolute difference of the stream from the original's own run
    refusal  why it takes none of the lengths; empty if it takes some
    """

    title: str
    lengths: tuple[int, ...]
    error: float
    refusal: str = ""

    def __str__(self) -> str:
        if not self.lengths:
            return f"not compared: {self.refusal}"
        listed = ", ".join(f"{length:,}" for length in self.lengths)
        return f"compared on streams of {listed} frames of the example; differs by at most {self.error:.3g}"


@record
class ProofReport(Report):
    """The result of a proof: what was compared, and how it ended.

    model       the pulsed model
    backends    the backends that ran each stream
    tried       the streams
    skipped     lengths that the offline model refuses
    outputs     what was compared of each output
    trials      what was to be tried
    seed        seed of the random inputs
    worst       the largest differences
    divergence  the first difference; None if there is none
    rejected    the difference in another runtime, if a file is equal in one and not in the other
    load_error  why a file was not run in onnxruntime, although it is installed; empty if it was
    original    the comparison with a PyTorch module, if the model was exported from one for this proof
    domain      the floats of the inputs: any, or those for which the model itself returns numbers
    """

    model: PulsedNetwork
    backends: tuple[str, ...]
    tried: tuple[TrialRecord, ...]
    skipped: tuple[int, ...]
    outputs: tuple[Coverage, ...]
    trials: Trials
    seed: int
    worst: LargestError
    divergence: Divergence | None = None
    rejected: Divergence | None = None
    load_error: str = ""
    original: OriginalRecord | None = None
    domain: InputDomain = "any number"

    @property
    def error(self) -> float:
        """The largest absolute difference from the f64 run, over all outputs."""
        return self.worst.error

    @property
    def equal(self) -> bool:
        """Whether every output frame of every stream agreed."""
        return self.divergence is None

    @property
    def gaps(self) -> list[str]:
        """The outputs, or the module, about which equality proves nothing, and why."""
        gaps = [
            f"{output.name}: {output.reason_not_proved}"
            for output in self.outputs
            if output.reason_not_proved
        ]
        original = self.original
        return gaps + ([f"{original.title}: {original.refusal}"] if original and not original.lengths else [])

    @property
    def outcome(self) -> ProofOutcome:
        """The outcome; ``equal`` only if every output was compared in values that depend on the input."""
        if self.divergence is not None:
            return "diverged"
        return "not proved" if self.gaps else "equal"

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that were run, each once."""
        return tuple(sorted({trial.length for trial in self.tried}))

    def require(self) -> "ProofReport":
        """Return the report if the outcome is ``equal``. Raises DivergenceError, NotProvedError: it is another."""
        if self.outcome == "equal":
            return self
        raise (DivergenceError if self.outcome == "diverged" else NotProvedError)(self.verdict)

    @property
    def verdict(self) -> str:
        """The outcome in a sentence or more."""
        if self.divergence is not None:
            return str(self.divergence)
        if self.gaps:
            return f"nothing was proved about {'; '.join(self.gaps)}"
        equal_text = "equal: every frame of every stream"
        if self.load_error:
            equal_text += f", in {' and '.join(self.backends)} only"
        return equal_text if self.original is None else f"{equal_text}, and {self.original.title}"

    def sections(self) -> list[Section]:
        """Return the streams that were tried, their results, and the verdict."""
        return [Pairs(self.pairs()), Text(self.verdict)]

    def pairs(self) -> list[tuple[str, str]]:
        """Return names and texts of the streams that were tried and of their results."""
        lengths = self.lengths
        span = f"{len(self.tried)} of {span_of(lengths[0], lengths[-1])}"
        tried_signals = {trial.signal for trial in self.tried}
        signals = ", ".join(signal for signal in SIGNALS if signal in tried_signals)
        pairs = [("streams", f"{span}: {signals}; seed {self.seed}")]
        if self.domain != "any number":
            pairs.append(
                ("inputs", f"{self.domain}, because the model itself returns NaN or infinity for others")
            )
        pairs += [("long enough", self._reach(lengths[-1]))]
        if self.skipped:
            pairs.append(
                ("skipped", f"{', '.join(map(str, self.skipped))} frames: refused by the offline model too")
            )
        pairs += [(f"values of {output.name}", str(output)) for output in self.outputs]
        worst = f"at most {self.worst.error:.3g} ({self.worst.relative:.2g} of the largest value)"
        pairs.append(("difference", f"{worst}, within rounding error" if self.equal else worst))
        if self.original is not None:
            pairs.append((self.original.title, str(self.original)))
        if self.rejected is not None:
            text = f"computes less exactly than the types of the model: {self.rejected}"
            pairs.append((self.rejected.backend, text))
        if self.load_error:
            pairs.append(("onnxruntime", f"not compared: {self.load_error}"))
        return pairs

    def _reach(self, longest: int) -> str:
        span = (
            "all earlier frames"
            if self.trials.receptive_frames is None
            else count_of(self.trials.receptive_frames, "frame", form=",")
        )
        text = f"an output depends on {span}; the longest stream has {longest:,}"
        if longest < self.trials.wanted_frames:
            text += f" of the {self.trials.wanted_frames:,} recommended"
        if self.trials.left_out:
            text += f", {count_of(self.trials.left_out, 'other is', 'others are')} left out"
        offer = longest < self.trials.wanted_frames or self.trials.left_out
        return (f"{text}: {spell('long')} tries them" if offer else text) + self._overflow()

    def _overflow(self) -> str:
        buffered = self.trials.buffered
        if not buffered:
            return ""
        memory = "and overflows" if self.has_overflowed else "and never evicts a frame in these streams"
        return f"; the longest buffer holds {buffered:,}, {memory}"

    @property
    def has_overflowed(self) -> bool:
        """Whether some stream was longer than every buffer of past frames, so that each has evicted frames."""
        return max(self.lengths, default=0) > self.trials.buffered

    def values(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
            "verdict": self.verdict,
            "backends": self.backends,
            "pulse_frames": self.model.pulse,
            "streams": self.tried,
            "lengths": self.lengths,
            "skipped": self.skipped,
            "receptive_frames": self.trials.receptive_frames,
            "wanted_frames": self.trials.wanted_frames,
            "buffer_frames": self.trials.buffered,
            "overflowed": self.has_overflowed,
            "left_out": self.trials.left_out,
            "seed": self.seed,
            "input_domain": self.domain,
            "outputs": self.outputs,
            "error": self.error,
            "relative_error": self.worst.relative,
            "share": self.worst.share,
            "divergence": self.divergence,
            "rejected": self.rejected,
            "load_error": self.load_error,
            "original": self.original,
        }
