"""The two resamplers of a live stream, made by ``native.resample``: from the device's rate to the model's, and back."""

from fractions import Fraction

from streaming.live.config import StreamConfig
from streaming.live.delay import Timing
from streaming.native.resample import NativeResampler

MAX_RESAMPLED_FRAMES = 4096
"""Maximum number of frames that are resampled at a time, unless a pulse is longer."""


class Resamplers:
    """The resamplers of a pipeline: one for each channel of the inputs and of the played output of each stream.

    There are none if rates are equal and there is one clock.

    largest  the most frames to feed at a time
    inputs   resamplers from the device's input to the model
    outputs  resamplers from the model to the device's output, with a variable ratio if that has a separate clock
    """

    def __init__(
        self, config: StreamConfig, pulse_frames: int, quality: str, inputs: int = 1, outputs: int = 1
    ) -> None:
        self._config = config
        self._pulse_frames = pulse_frames
        self.largest = max(MAX_RESAMPLED_FRAMES, pulse_frames)

        def new_resamplers(rate_in_hz: int, rate_out_hz: int, count: int) -> list[NativeResampler]:
            return [NativeResampler(rate_in_hz, rate_out_hz, quality, self.largest) for _ in range(count)]

        differs = config.two_clocks or config.rate_out_hz != config.rate_hz
        self.inputs = (
            new_resamplers(config.rate_in_hz, config.rate_hz, inputs)
            if config.rate_in_hz != config.rate_hz
            else []
        )
        self.outputs = (
            new_resamplers(config.rate_hz, config.rate_out_hz, outputs)
            if config.channels_out and differs
            else []
        )

    @property
    def timing(self) -> Timing:
        """Sizes and rates that determine the delay of the pipeline."""
        config = self._config
        return Timing(
            self._pulse_frames,
            config.block_frames,
            config.rate_hz,
            config.rate_in_hz,
            config.rate_out_hz,
            self.inputs[0].delay_frames if self.inputs else 0,
            self.outputs[0].delay_frames if self.outputs else 0,
        )

    @property
    def held_frames(self) -> float:
        """The frames at the output rate that resamplers hold after a pulse, on average, as they make whole frames."""
        config, total = self._config, 0.0
        for resampler in self.inputs[:1]:
            step = Fraction(resampler.rate_in_hz, resampler.rate_out_hz)
            frames = resampler.delay_frames + 1 - step - (1 - Fraction(1, step.denominator)) / 2
            total += float(frames) * config.rate_out_hz / config.rate_in_hz
        for resampler in self.outputs[:1]:
            total += resampler.delay_frames * config.rate_out_hz / config.rate_hz - 0.5
        return total
