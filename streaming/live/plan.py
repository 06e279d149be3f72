"""Plan: the requested devices, rates and blocks, and the streams that are opened from it."""

from pulse.errors import InputError
from pulse.program.program import Program
from pulse.support.record import record
from pulse.support.wording import count_of
from streaming.audio.channels import Channels, OutputChoice
from streaming.errors import DeviceError
from streaming.hosts.host import DeviceStream, Endpoint, Finished, Host, StreamRequest
from streaming.live.config import StreamConfig
from streaming.live.input_routing import route_inputs
from streaming.live.instances import live_inputs
from streaming.live.pipeline import Pipeline
from streaming.routing import Route, playable_output

MAX_DEVICE_CHANNELS = 2
"""Maximum number of a device's channels that are used for a model with one."""
TEARDOWN_TIMEOUT_S = 2.0
"""A device that does not stop within this many seconds is abandoned."""


@record
class Plan:
    """The requested devices, rates and blocks.

    rate_hz         the rate of the model
    input, output   a device's number or a part of its name; the system's default if None
    play            whether to play sound
    channels        the input channels to take: the mean of the first two, one, or one stream for each; for a
                    model with one input channel
    routes          the sources of inputs, by name; without them, the channels of ``input`` in the order of the inputs
    device_rate_hz  the rate of the devices; their default if None
    block_frames    device frames in a block; as many as a pulse if None; 0 lets the device choose
    latency         the latency to request: ``low``, ``high`` or seconds
    """

    rate_hz: int
    input: str | int | None = None
    output: str | int | None = None
    play: bool = True
    channels: Channels = Channels()
    device_rate_hz: int | None = None
    block_frames: int | None = None
    latency: str | float = "low"
    routes: tuple[Route, ...] = ()

    def __post_init__(self) -> None:
        if self.rate_hz < 1 or (self.device_rate_hz is not None and self.device_rate_hz < 1):
            raise InputError(
                f"sample rates must be positive: model {self.rate_hz}, device {self.device_rate_hz} Hz"
            )
        if self.block_frames is not None and self.block_frames < 0:
            raise InputError(f"blocks of {count_of(self.block_frames, 'frame')}: give 0 or more")


class PlannedDevices:
    """The devices of a plan, and the open streams on them.

    program  the program to feed
    output   the output to play, as in ``EngineConfig``
    Raises   InputError, DeviceError: no such device, channel or output
    """

    def __init__(self, host: Host, plan: Plan, program: Program, output: str | None = None) -> None:
        self._host, self._plan = host, plan
        routing = route_inputs(host, plan.input, plan.channels, plan.routes, program)
        self.source = routing.source
        self._is_default = routing.requested is None
        self.target = host.choose("output", plan.output) if plan.play else None
        channels = routing.channels
        channels_in = (
            max(routing.input_channels) + 1 if routing.input_channels else _channels_in(channels, self.source)
        )
        streams = 1 if routing.input_channels else channels.count_streams(channels_in)
        channels_out = 0
        if self.target is not None:
            played = playable_output(program, live_inputs(program)[0], output)
            channels_out = _channels_out(self.target, streams, played, host.is_finite)
        rate = plan.device_rate_hz or self._default_rate()
        frames = plan.block_frames
        if frames is None:
            frames = max(round(program.pulse * rate / plan.rate_hz), 1)
        source, target = self.source, self.target
        two_clocks = target is not None and source.index != target.index
        self.stream_config = StreamConfig(
            rate_hz=plan.rate_hz,
            rate_in_hz=rate,
            rate_out_hz=rate,
            channels_in=channels_in,
            channels_out=channels_out,
            channels=channels,
            block_frames=frames,
            two_clocks=two_clocks,
            input_channels=routing.input_channels,
        )
        self.in_callback = False
        """Whether a callback of a stopped device has not returned, and may still use the pipeline."""
        self._open: list[DeviceStream] = []

    @property
    def may_end(self) -> bool:
        """Whether a device that ends is the normal end of the run."""
        return self._host.is_finite

    @property
    def latencies_s(self) -> tuple[float, float]:
        """The input and output latency in seconds that the devices report."""
        if not self._open:
            return 0.0, 0.0
        return self._open[-1].input_latency_s, self._open[0].output_latency_s if self.target else 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the open streams."""
        return tuple(stream.note for stream in self._open if stream.note)

    def open(self, pipeline: Pipeline, finished: Finished) -> None:
        """Open all devices and start their callbacks, output-only ones first. Raises DeviceError: none is open then."""
        request = StreamRequest(
            callback_address=pipeline.callback_address,
            user_address=pipeline.address,
            source=self.source,
            target=self.target,
            channels_in=self.stream_config.channels_in,
            channels_out=self.stream_config.channels_out,
            rate_hz=self.stream_config.rate_in_hz,
            block_frames=self.stream_config.block_frames,
            latency=self._plan.latency,
            finished=finished,
            delay_frames=pipeline.delay_frames,
        )
        requests = (
            [request.only_target(), request.only_source()] if self.stream_config.two_clocks else [request]
        )
        try:
            for request in requests:
                self._open.append(self._host.open(request))
            for stream in self._open:
                stream.start()
        except BaseException:
            self.stop(TEARDOWN_TIMEOUT_S)
            raise

    def reopen(self, pipeline: Pipeline, finished: Finished) -> None:
        """Open the same devices again, by name. Raises DeviceError, InputError: one is not found, or not opened."""
        if not self._host.refresh():
            raise DeviceError("the audio system no longer responds: start this program again")
        self.source = self._host.choose("input", None if self._is_default else self.source.name)
        if self.target is not None:
            name = None if self._plan.output is None else self.target.name
            self.target = self._host.choose("output", name)
        self.open(pipeline, finished)

    def stop(self, limit_s: float) -> bool:
        """Close the devices. Returns False if one of them does not respond within the limit."""
        streams, self._open = self._open, []
        answers = [stream.stop(limit_s) for stream in reversed(streams)]
        self.in_callback = self.in_callback or any(stream.in_callback for stream in streams)
        return all(answers)

    def _default_rate(self) -> int:
        return self.source.rate_hz if self.target is None else min(self.source.rate_hz, self.target.rate_hz)


def _channels_in(channels: Channels, source: Endpoint) -> int:
    """Return the number of channels to open for a choice. Raises InputError: the source does not have it."""
    if channels.index is None:
        return min(source.channels, MAX_DEVICE_CHANNELS)
    channels.count_streams(source.channels)
    return channels.index + 1


def _channels_out(target: Endpoint, streams: int, played: OutputChoice | None, is_file: bool) -> int:
    """Return the number of channels to open: one for each that is played, two for a single one.

    Raises InputError: the device has fewer; a file gets as many as are played
    """
    channels = 1 if played is None else len(played.channels)
    if is_file and channels > 1:
        return streams * channels
    if streams * channels <= target.channels:
        return min(max(streams * channels, MAX_DEVICE_CHANNELS), target.channels)
    if streams > 1:
        raise InputError(
            f"{streams} streams for {count_of(target.channels, 'channel')} of {target.name}: choose another output "
            "device, or one channel, or mix"
        )
    name = "" if played is None else played.port.name
    raise InputError(
        f"{name} has {channels} channels, but {target.name} plays {target.channels}: choose another output device, or "
        f"play one channel: {name}:0"
    )
