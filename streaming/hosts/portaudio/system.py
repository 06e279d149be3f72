"""One copy of PortAudio, initialised: its devices, and the calls that open and close streams."""

import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from ctypes import byref, c_void_p

from pulse.support.not_copyable import NotCopyable
from streaming.errors import DeviceError
from streaming.hosts.devices import Device
from streaming.hosts.portaudio import portaudio_library as c
from streaming.hosts.portaudio.alsa_messages import capture_alsa_messages
from streaming.hosts.portaudio.caller import Caller
from streaming.hosts.portaudio.refusal import open_error
from streaming.hosts.portaudio.stream_spec import StreamSpec

OPEN_TIMEOUT_S = 8.0
"""The seconds that a device may take to open."""
PROBE_TIMEOUT_S = 1.0
"""A call of PortAudio that takes longer means that its sound server hangs."""
_UNUSED_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 2)
"""The callback of a stream that is never started."""


class AudioSystem(NotCopyable, reason="it belongs to this process; make another one in the other process"):
    """PortAudio's state in one copy of its library. Calls that may hang are made by one thread, with a limit.

    devices               the devices when it was initialised
    streams               the number of open streams
    is_closed             whether streams can no longer be opened: it was ended, or its JACK server was lost, so that
                          its calls hang, or end the process
    may_initialise_again  whether its copy of the library has terminated and may be used by another system
    is_replaced           whether another system has replaced it; it ends with its last stream
    """

    def __init__(self, library: c.PortAudioLibrary) -> None:
        self.library = library
        self.devices: tuple[Device, ...] = ()
        self.streams = 0
        self.is_closed = False
        self.may_initialise_again = False
        self.is_replaced = False
        self._call = Caller("portaudio")
        self._process = os.getpid()
        self._jack: c.HostApiInfo | None = None
        self._ready: Future[None] | None = None

    @property
    def is_inherited(self) -> bool:
        """Whether it belongs to the process that this one was forked from."""
        return self._process != os.getpid()

    @property
    def is_usable(self) -> bool:
        """Whether streams may be opened."""
        return not (self.is_closed or self._call.stuck or self.is_inherited)

    @property
    def is_starting(self) -> bool:
        """Whether it is still searching for devices."""
        return self._ready is not None and not self._ready.done()

    def wait(self, limit_s: float) -> bool:
        """Start PortAudio once; return whether it is ready within the limit. Raises DeviceError: it never will be."""
        with capture_alsa_messages():
            if self._ready is None:
                self._ready = self._call.submit(self._initialise)
            try:
                self._ready.result(limit_s)
            except TimeoutError:
                return False
        return True

    def _initialise(self) -> None:
        code = self.library.Initialize()
        if code < 0:
            self.is_closed = True
            raise DeviceError(f"PortAudio does not start: {self._error_text(code)}")
        apis = [
            self.library.GetHostApiInfo(index).contents for index in range(self.library.GetHostApiCount())
        ]
        self._jack = next((api for api in apis if api.kind == c.JACK_HOST_API), None)
        defaults = self.library.GetDefaultInputDevice(), self.library.GetDefaultOutputDevice()
        count = max(self.library.GetDeviceCount(), 0)
        self.devices = tuple(self._device(index, apis, defaults) for index in range(count))

    def _device(self, index: int, apis: Sequence[c.HostApiInfo], defaults: tuple[int, int]) -> Device:
        info: c.DeviceInfo = self.library.GetDeviceInfo(index).contents
        return Device(
            index=index,
            name=info.name.decode(errors="replace"),
            host_api=apis[info.host_api].name.decode(errors="replace"),
            inputs=info.inputs,
            outputs=info.outputs,
            default_rate_hz=round(info.rate_hz),
            low_input_latency_s=info.low_input_s,
            high_input_latency_s=info.high_input_s,
            low_output_latency_s=info.low_output_s,
            high_output_latency_s=info.high_output_s,
            default_in=index == defaults[0],
            default_out=index == defaults[1],
        )

    def uses_jack(self, spec: StreamSpec) -> bool:
        """Return whether a stream belongs to JACK."""
        if self._jack is None:
            return False
        name = self._jack.name.decode(errors="replace")
        return any(side.device.host_api == name for side in spec.sides)

    def open(self, spec: StreamSpec) -> c_void_p:
        """Open a stream and return its handle. Raises DeviceError: the device cannot be opened."""
        handle = c_void_p()
        stream_options = (spec.block_frames, 0, spec.callback, spec.user)

        def try_open() -> tuple[int, str]:
            code = self.library.OpenStream(
                byref(handle), *spec.parameters, float(spec.rate_hz), *stream_options
            )
            return code, self._error_text(code)

        def supports(rate_hz: int) -> bool:
            return self._call(lambda: self._supports_rate(spec, rate_hz), OPEN_TIMEOUT_S)

        with capture_alsa_messages() as reason:
            try:
                code, text = self._call(try_open, OPEN_TIMEOUT_S)
                if code < 0:
                    raise open_error(spec.sides, spec.rate_hz, code, reason() or text, supports)
            except TimeoutError:
                titles = " and ".join(side.device.title for side in spec.sides)
                raise DeviceError(
                    f"{titles}: does not answer; is a sound server hanging? Restart the sound server"
                ) from None
        self.streams += 1
        return handle

    def _supports_rate(self, spec: StreamSpec, rate_hz: int) -> bool:
        return self.library.IsFormatSupported(*spec.parameters, float(rate_hz)) == 0

    def _error_text(self, code: int) -> str:
        if code == c.HOST_ERROR:
            return self.library.GetLastHostErrorInfo().contents.text.decode(errors="replace")
        return self.library.GetErrorText(code).decode(errors="replace")

    def start(self, handle: c_void_p) -> str | None:
        """Start the callbacks. Returns the reason if that failed, else None."""

        def try_start() -> tuple[int, str]:
            code = self.library.StartStream(handle)
            return code, self._error_text(code)

        with capture_alsa_messages() as reason:
            try:
                code, text = self._call(try_start, OPEN_TIMEOUT_S)
            except TimeoutError:
                return "the audio system does not answer"
            return None if code >= 0 else reason() or text

    def stop(self, handle: c_void_p, limit_s: float) -> bool:
        """Stop the callbacks after the last block has been played. Returns whether the limit sufficed.

        PortAudio refuses to stop a stream that has ended by itself, and closing aborts one that still runs: only
        ``close`` reads the code.
        """
        try:
            self._call(lambda: self.library.StopStream(handle), limit_s)
        except TimeoutError:
            return False
        return True

    def close(self, handle: c_void_p, uses_jack: bool, limit_s: float) -> bool:
        """Close a stream, if that is safe. Returns whether it is closed."""
        if uses_jack and not self._probe_jack():
            return False
        return self._try_call(lambda: self.library.CloseStream(handle), limit_s)

    def release_stream(self, was_closed: bool) -> None:
        """Record that a stream is no longer used; if it could not be closed, mark the system closed."""
        self.streams -= 1
        self.is_closed = self.is_closed or not was_closed
        if self.streams == 0 and self.is_closed:
            self._call.end()
        elif self.streams == 0 and self.is_replaced:
            self.end(PROBE_TIMEOUT_S)

    def end(self, limit_s: float) -> None:
        """Release everything, if that is safe and possible within the limit."""
        answers = self._probe_jack()
        self.is_closed = True
        if answers and self._try_call(self.library.Terminate, limit_s):
            self._call.end()
            self.may_initialise_again = not self.library.is_initialised

    def _probe_jack(self) -> bool:
        """Return whether the JACK server, if there is one, still responds; close the system if it has gone.

        PortAudio cannot be asked; but to register a port fails at once if the server has gone. To close anything
        then would wait for 10 minutes and end the process.
        """
        jack = self._jack
        if jack is None or not self.is_usable:
            return self.is_usable
        index, is_input = (
            (jack.default_input, True) if jack.default_input >= 0 else (jack.default_output, False)
        )
        if index < 0:
            return False
        rate_hz = self.library.GetDeviceInfo(index).contents.rate_hz

        def try_open() -> bool:
            parameters, handle = byref(c.StreamParameters(index, 1, c.FLOAT32, 0.0, None)), c_void_p()
            sides = (parameters, None) if is_input else (None, parameters)
            if self.library.OpenStream(byref(handle), *sides, rate_hz, 0, 0, _UNUSED_CALLBACK, None) < 0:
                return False
            self.library.CloseStream(handle)
            return True

        with capture_alsa_messages():
            try:
                self.is_closed = not self._call(try_open, PROBE_TIMEOUT_S)
            except TimeoutError:
                return False
        return self.is_usable

    def _try_call(self, call: Callable[[], int], limit_s: float) -> bool:
        """Make a call of PortAudio; return whether it succeeds within the limit."""
        try:
            return self._call(call, limit_s) >= 0
        except TimeoutError:
            return False
