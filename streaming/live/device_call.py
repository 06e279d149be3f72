"""The call that a device makes for each of its blocks, made from Python."""

import numpy as np

from pulse.errors import InputError
from streaming.audio.channels import Samples
from streaming.hosts.host import StreamRequest
from streaming.native.callback_signature import FUNCTION


class DeviceCall:
    """Calls the callback of a stream request, without the GIL.

    request  the stream whose callback is called
    """

    def __init__(self, request: StreamRequest) -> None:
        self._function = FUNCTION(request.callback_address)
        self._request = request

    def __call__(
        self, captured: Samples | int, flags: int = 0, times_s: tuple[float, float, float] | None = None
    ) -> tuple[Samples, int]:
        """Call it with one block.

        captured  a block [frames, channels_in], or the number of frames if there is no input
        flags     PortAudio's flags
        times_s   capture time of the first sample, present time, playback time of the first sample; None: unknown
        Returns   the sound to play [frames, channels_out], and the callback's return value
        Raises    InputError: a wrong number of channels
        """
        request = self._request
        block = None if isinstance(captured, int) else np.ascontiguousarray(captured, np.float32)
        frames = captured if isinstance(captured, int) else len(captured)
        if block is not None and block.shape != (frames, request.channels_in):
            raise InputError(
                f"a block {block.shape} for {request.channels_in} channels: give [frames, channels]"
            )
        played = np.empty((frames, request.channels_out), np.float32)
        clock = None if times_s is None else np.array(times_s, np.float64)
        answer = self._function(
            None if block is None or not request.channels_in else block.ctypes.data,
            played.ctypes.data if request.channels_out else None,
            frames,
            None if clock is None else clock.ctypes.data,
            flags,
            request.user_address,
        )
        return played, int(answer)
