"""Resamplers: from the rate of the device to that of the model, and back."""

from fractions import Fraction

from streaming.live.form import Form
from streaming.live.schedule import Course
from streaming.native.resample import NativeResampler

LARGEST = 4096
"""Frames that are resampled at a time, unless a pulse is longer."""


class Resamplers:
    """Those of a pipeline: inward one for each input of each stream, outward one for each stream.

    None where rates are equal and there is one clock.

    largest  frames that are fed at a time
    inward   from the device's input to the model
    outward  from the model to the device's output, tuned where that has a clock of its own
    """

    def __init__(self, form: Form, streams: int, pulse_frames: int, quality: str, inputs: int = 1) -> None:
        self._form = form
        self._pulse_frames = pulse_frames
        self.largest = max(LARGEST, pulse_frames)

        def each(rate_in_hz: int, rate_out_hz: int, count: int) -> list[NativeResampler]:
            return [NativeResampler(rate_in_hz, rate_out_hz, quality, self.largest) for _ in range(count)]

        differs = form.two_clocks or form.rate_out_hz != form.rate_hz
        self.inward = (
            each(form.rate_in_hz, form.rate_hz, streams * inputs) if form.rate_in_hz != form.rate_hz else []
        )
        self.outward = each(form.rate_hz, form.rate_out_hz, streams) if form.channels_out and differs else []

    @property
    def course(self) -> Course:
        """What sets the pace of the pipeline."""
        form = self._form
        return Course(
            self._pulse_frames,
            form.block_frames,
            form.rate_hz,
            form.rate_in_hz,
            form.rate_out_hz,
            self.inward[0].delay_frames if self.inward else 0,
            self.outward[0].delay_frames if self.outward else 0,
        )

    @property
    def inside_frames(self) -> float:
        """Frames of the output's device that they hold after a pulse, on average, since they make whole frames."""
        form, inside = self._form, 0.0
        for one in self.inward[:1]:
            step = Fraction(one.rate_in_hz, one.rate_out_hz)
            more = one.delay_frames + 1 - step - (1 - Fraction(1, step.denominator)) / 2
            inside += float(more) * form.rate_out_hz / form.rate_in_hz
        for one in self.outward[:1]:
            inside += one.delay_frames * form.rate_out_hz / form.rate_hz - 0.5
        return inside
