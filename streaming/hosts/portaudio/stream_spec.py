"""The specification of a stream for PortAudio."""

from ctypes import byref

from pulse.support.record import record
from streaming.hosts.devices import Device, DeviceKind
from streaming.hosts.portaudio import portaudio_library as c


@record
class StreamSide:
    """One direction of a stream: channels of a device, and the latency to request."""

    kind: DeviceKind
    device: Device
    channels: int
    latency_s: float

    def parameters(self) -> c.StreamParameters:
        """Return the parameters as PortAudio's structure."""
        return c.StreamParameters(self.device.index, self.channels, c.FLOAT32, self.latency_s, None)


@record
class StreamSpec:
    """A stream: one side or both, frames per second and per block (0: any), addresses of the callback and its data."""

    sides: tuple[StreamSide, ...]
    rate_hz: int
    block_frames: int
    callback: int
    user: int

    @property
    def parameters(self) -> list[object]:
        """The parameters of input and output, as PortAudio takes them."""
        references = {side.kind: byref(side.parameters()) for side in self.sides}
        return [references.get("input"), references.get("output")]
