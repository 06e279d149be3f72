"""Configuration of a live run: the devices that it connects, and how it computes."""

from pulse.errors import InputError
from pulse.support.naming import require_name
from pulse.support.record import record
from pulse.support.wording import choose_wording, count_of, spell
from streaming.audio.channels import Channels
from streaming.native import control_block as cb
from streaming.native.filters import DEFAULT_QUALITY, QUALITIES
from streaming.policies import POLICIES

MAX_BLOCK_S = 10
"""A longer block is an error: it would delay the audio by as much."""
ENGINES = {"worker": cb.ON_WORKER, "callback": cb.IN_CALLBACK}


@record
class StreamConfig:
    """The rates, channels and block sizes of the devices that a pipeline connects.

    rate_hz                  the rate of the model
    rate_in_hz, rate_out_hz  the rates of the devices
    channels_in              the channels of the input device
    channels_out             the channels of the output device; 0 if nothing is played
    channels                 the channels that a model with one input channel takes
    input_channels           the device's channel for each input channel, in order, for a model with several
    block_frames             device frames in a block; 0 if unknown or variable
    two_clocks               whether input and output are devices with their own clocks
    """

    rate_hz: int
    rate_in_hz: int
    rate_out_hz: int
    channels_in: int = 1
    channels_out: int = 1
    channels: Channels = Channels()
    block_frames: int = 0
    two_clocks: bool = False
    input_channels: tuple[int, ...] = ()

    @property
    def stream_count(self) -> int:
        """The number of streams. Raises InputError: the device has no such channel."""
        return 1 if self.input_channels else self.channels.count_streams(self.channels_in)

    def __post_init__(self) -> None:
        if min(self.rate_hz, self.rate_in_hz, self.rate_out_hz) < 1:
            raise InputError(
                f"sample rates must be positive: model {self.rate_hz}, input {self.rate_in_hz}, output "
                f"{self.rate_out_hz} Hz"
            )
        if self.channels_in < 1 or self.channels_out < 0 or self.block_frames < 0:
            raise InputError(
                f"{count_of(self.channels_in, 'channel')} in, {self.channels_out} out, blocks of "
                f"{count_of(self.block_frames, 'frame')}: "
                "at least one input channel, and no negative numbers"
            )
        if (
            self.input_channels
            and not 0 <= min(self.input_channels) <= max(self.input_channels) < self.channels_in
        ):
            raise InputError(
                f"the inputs take channels {', '.join(map(str, self.input_channels))} of a device with "
                f"{self.channels_in}, counted from 0: choose existing channels"
            )
        if self.block_frames > MAX_BLOCK_S * self.rate_in_hz:
            raise InputError(
                f"blocks of {count_of(self.block_frames, 'frame')} are {self.block_frames / self.rate_in_hz:.0f} s at "
                f"{self.rate_in_hz} Hz: give at most {spell('block_frames', MAX_BLOCK_S * self.rate_in_hz)}"
            )


@record
class EngineConfig:
    """The settings of a pipeline's engine.

    engine          ``worker``: a separate thread computes; ``callback``: the device's callback does, which needs no
                    headroom if a pulse takes far less time than a block
    policy          one of ``streaming.policies.POLICIES``
    headroom_s      the time a worker may take to respond, rounded up to whole blocks; 5 ms if None
    quality         resampling quality: ``low``, ``medium``, ``high`` or ``best``
    output          the name of the output to play, or of a channel of it, ``name:channel``; if None the first with as
                    many channels as the input, else the first that is sound
    records         whether Python also gets all outputs of each pulse
    reserve_frames  the minimum delay of the audio, in frames of the model, for longer delays of other programs
    virtual_clock   whether ``Pipeline.set_time`` sets the time
    """

    engine: str = "worker"
    policy: str = "silence_then_catch_up"
    headroom_s: float | None = None
    quality: str = DEFAULT_QUALITY
    output: str | None = None
    records: bool = False
    reserve_frames: int = 0
    virtual_clock: bool = False

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("engine", self.engine, ENGINES),
            ("policy", self.policy, POLICIES),
            ("quality", self.quality, QUALITIES),
        ):
            require_name(name, value, choices, InputError, spell(name))
        if self.headroom_s is not None and not 0 <= self.headroom_s <= 10:
            in_ms = f"{spell('headroom_s')} {1e3 * self.headroom_s:g}: give 0 to 10000 ms"
            raise InputError(choose_wording(f"headroom_s={self.headroom_s:g}: give 0 to 10 seconds", in_ms))
        if self.headroom_s and self.engine == "callback":
            raise InputError(
                f"the callback computes at once, without headroom: omit {spell('headroom_s')}, or choose "
                f"{spell('engine', 'worker')}"
            )
        if self.reserve_frames < 0:
            raise InputError(f"a reserve of {count_of(self.reserve_frames, 'frame')}: give 0 or more")
