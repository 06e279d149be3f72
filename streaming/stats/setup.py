"""The settings with which a live run was started."""

from pulse.support.record import record
from streaming.realtime.options import RealtimeSetting
from streaming.stats.statistics import DelayBreakdown


@record
class Setup:
    """All that is settled before the first sample.

    model            its title
    backend          ``numba``, ``numpy``, ``onnxruntime``, or several: ``numba + numpy``
    weights          ``f32``, ``bf16`` or ``int8``
    activations      ``f32``, or ``int8`` where they meet weights of int8
    pulse_frames     frames that the model takes at once
    rate_hz          of the model
    input            name of the input device, None without one
    output           name of the device that plays, None without one
    device_rate_hz   of the devices
    block_frames     device frames that come at once; 0 if the device chooses
    channels         the channels in use: ``mix``, ``each`` or a number; with several inputs, the channel of each
    streams          how many streams that makes
    engine           where the model computes: ``callback``, ``worker``, ``python``
    policy           what is done when it is late: ``wait``, ``drop_oldest``, ``silence_then_catch_up``, ``abort``
    deadline_s       from the arrival of a pulse until its output has to be ready
    delay            end to end, as it is at the start
    realtime_settings  what was requested of the system, and what it granted
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
        """The time of a pulse."""
        return self.pulse_frames / self.rate_hz

    @property
    def block_s(self) -> float:
        """The time of a block of the device; 0 if the device chooses."""
        return self.block_frames / self.device_rate_hz
