"""Devices through sounddevice and a Python callback, for systems where PortAudio cannot be called directly."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pulse.support.not_copyable import NotCopyable
from streaming.errors import DeviceError
from streaming.hosts.devices import Device, DeviceKind
from streaming.hosts.host import StreamRequest
from streaming.hosts.portaudio.caller import Caller
from streaming.hosts.portaudio.portaudio_library import INSTALL_ADVICE
from streaming.hosts.portaudio.stream_spec import StreamSide
from streaming.hosts.portaudio.system import OPEN_TIMEOUT_S
from streaming.native.callback_signature import ABORT, COMPLETE, FUNCTION
from streaming.native.gate import Gate, stream_callback

_FLAGS = ("input_underflow", "input_overflow", "output_underflow", "output_overflow", "priming_output")
"""sounddevice's names of flags, in the order of PortAudio's bits."""
PYTHON_NOTE = "the callback runs in Python, so it is late while Python is busy"

_given_up: list["PythonStream"] = []


def sounddevice() -> Any:
    """Import the package. Raises DeviceError: it is not installed."""
    try:
        import sounddevice
    except (ImportError, OSError) as error:
        raise DeviceError(INSTALL_ADVICE) from error
    return sounddevice


def list_devices() -> tuple[Device, ...]:
    """Return all devices, as they were when sounddevice was imported.

    Raises DeviceError: sounddevice is not installed
    """
    package = sounddevice()
    apis = package.query_hostapis()
    default_in, default_out = package.default.device
    return tuple(
        Device(
            index=index,
            name=info["name"],
            host_api=apis[info["hostapi"]]["name"],
            inputs=info["max_input_channels"],
            outputs=info["max_output_channels"],
            default_rate_hz=round(info["default_samplerate"]),
            low_input_latency_s=info["default_low_input_latency"],
            high_input_latency_s=info["default_high_input_latency"],
            low_output_latency_s=info["default_low_output_latency"],
            high_output_latency_s=info["default_high_output_latency"],
            default_in=index == default_in,
            default_out=index == default_out,
        )
        for index, info in enumerate(package.query_devices())
    )


class PythonStream(NotCopyable, reason="it has a device; open another one"):
    """An open stream; see ``host.DeviceStream``. Raises DeviceError: the devices cannot be opened."""

    note: str | None = PYTHON_NOTE
    in_callback = False

    def __init__(self, request: StreamRequest, sides: tuple[StreamSide, ...]) -> None:
        self._title = " and ".join(dict.fromkeys(side.device.title for side in sides))
        self._gate = Gate(request.callback_address, request.user_address, request.channels_out)
        self._finished_callback = request.finished
        self._function = FUNCTION(stream_callback.address)
        self._call = Caller("sounddevice")
        self._stopping = self.closed = False
        package = sounddevice()
        self._ends = {COMPLETE: package.CallbackStop, ABORT: package.CallbackAbort}
        self._error: type[Exception] = package.PortAudioError
        index_of = {device.title: device.index for device in list_devices()}
        missing = [side.device.title for side in sides if side.device.title not in index_of]
        if missing:
            raise DeviceError(f"{missing[0]}: unknown to sounddevice; restart this program")
        kinds: list[DeviceKind] = [side.kind for side in sides]
        if len(kinds) == 2:
            stream_class, callback = package.RawStream, self._process_both
        elif kinds == ["input"]:
            stream_class, callback = package.RawInputStream, self._process_input
        else:
            stream_class, callback = package.RawOutputStream, self._process_output
        values = [[index_of[side.device.title], side.channels, side.latency_s] for side in sides]
        device, channels, latency = values[0] if len(values) == 1 else zip(*values)
        self._stream = self._call_bounded(
            lambda: stream_class(
                request.rate_hz,
                request.block_frames,
                device,
                channels,
                "float32",
                latency,
                callback=callback,
                finished_callback=self._end,
            ),
            "does not open",
        )
        latency = self._stream.latency
        self.input_latency_s = latency[0] if len(kinds) == 2 else latency if kinds == ["input"] else 0.0
        self.output_latency_s = latency[1] if len(kinds) == 2 else latency if kinds == ["output"] else 0.0

    def _process_both(self, source: Any, target: Any, frames: int, clock: Any, flags: Any) -> None:
        self._process(_address(source), _address(target), frames, clock, flags)

    def _process_input(self, source: Any, frames: int, clock: Any, flags: Any) -> None:
        self._process(_address(source), None, frames, clock, flags)

    def _process_output(self, target: Any, frames: int, clock: Any, flags: Any) -> None:
        self._process(None, _address(target), frames, clock, flags)

    def _process(self, source: int | None, target: int | None, frames: int, clock: Any, flags: Any) -> None:
        times = np.array([clock.inputBufferAdcTime, clock.currentTime, clock.outputBufferDacTime])
        bits = sum(1 << bit for bit, name in enumerate(_FLAGS) if getattr(flags, name)) if flags else 0
        answer = self._function(source, target, frames, times.ctypes.data, bits, self._gate.address)
        if answer in self._ends:
            raise self._ends[answer]

    def _end(self) -> None:
        if not self._stopping:
            self._finished_callback()

    def _call_bounded(self, call: Callable[[], Any], problem: str) -> Any:
        try:
            return self._call(call, OPEN_TIMEOUT_S)
        except TimeoutError:
            raise DeviceError(f"{self._title}: {problem}, the audio system does not answer") from None
        except self._error as error:
            raise DeviceError(f"{self._title}: {problem} ({error}); choose another device or rate") from error

    def start(self) -> None:
        """Start the callbacks. Raises DeviceError: the device does not start."""
        self._call_bounded(self._stream.start, "does not start")

    def stop(self, limit_s: float) -> bool:
        """Stop the callbacks and release the device, once. Returns False if that takes longer than the limit."""
        if self.closed:
            return True
        self._stopping = self.closed = True
        try:
            self._call(self._stream.stop, limit_s)
            self._call(self._stream.close, limit_s)
        except TimeoutError:
            self.in_callback = not self._gate.shut(0.0)
            _given_up.append(self)
            return False
        self._call.end()
        self.in_callback = not self._gate.shut(limit_s)
        return not self.in_callback


def _address(buffer: Any) -> int:
    return np.frombuffer(buffer, np.uint8).ctypes.data
