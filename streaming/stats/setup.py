"""The settings with which a live run was started."""

from pulse.support.record import record
from streaming.realtime.realtime_settings import RealtimeSetting
from streaming.stats.live_statistics import DelayBreakdown


@record
class Setup:
    """The settings that are fixed before the first sample.

    model            the title of the model
    backend          ``numba``, ``numpy``, ``onnxruntime``, or several: ``numba + numpy``
    weights          ``f32``, ``bf16`` or ``int8``
    activations      ``f32``, or ``int8`` if rounded before int8 weights
    pulse_frames     frames that the model takes at once
    rate_hz          the rate of the model
    input            the name of the input device; None if there is none
    output           the name of the output device; None if there is none
    device_rate_hz   the rate of the devices
    block_frames     device frames in a block; 0 if the device chooses
    channels         the channels in use: ``mix``, ``each`` or a number; with several inputs, the channel of each
    streams          the resulting number of streams
    engine           where the model computes: ``callback``, ``worker``, ``python``
    policy           what to do when it is late: ``wait``, ``drop_oldest``, ``silence_then_catch_up``, ``abort``
    deadline_s       time from the arrival of a pulse until its output must be ready
    delay            the end-to-end delay at the start
    realtime_settings  the settings requested from the system, and whether it granted them
    """

    model: str
    backend: str
    weights: str
    pulse_frames: int
    rate_hz: int
    input: str | None
    output: str | None
    device_rate_hz: int
    block_frames: int
    channels: str
    streams: int
    engine: str
    policy: str
    deadline_s: float
    delay: DelayBreakdown
    realtime_settings: tuple[RealtimeSetting, ...] = ()
    activations: str = "f32"

    @property
    def pulse_s(self) -> float:
        """The duration of a pulse in seconds."""
        return self.pulse_frames / self.rate_hz

    @property
    def block_s(self) -> float:
        """The duration of a block of the device in seconds; 0 if the device chooses."""
        return self.block_frames / self.device_rate_hz
