"""The minimum delay that a model allows, found from its offline form alone.

After pulse p a stream has revealed its first ``n = (p + 1) * pulse`` frames, and that it has no fewer. A frame
of the output may be sent with that pulse only if it is the same in every continuation that has it: of any length
from n on, with any frames after the first n.
"""

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.models import TypedModel
from tests.noise import next_noise

ENDS = 7
"""Continuations end after 0 … ENDS-1 further frames, or far away."""
FAR = 6
"""Continuations that end far away."""


def smallest_delay(typed: TypedModel, pulse: int, out_frames: int, reach: int, ends: bool = True) -> int:
    """The smallest delay, in output frames, of the only output of a model of the only input x [1, C, T].

    reach   frames: no output frame depends on an input frame, or on an end, further away
    ends    whether continuations differ in length too, not only in their frames
    """
    pulses = 2 * -(-reach // pulse) + 2
    known_by_pulse = [known_frames(typed, (p + 1) * pulse, reach, ends) for p in range(pulses)]
    checked = (pulses - -(-reach // pulse)) * out_frames
    delay = 0
    while not all(_in_time(known_by_pulse, frame, delay, out_frames) for frame in range(checked)):
        delay += 1
    return delay


def _in_time(known_by_pulse: list[Array], frame: int, delay: int, out_frames: int) -> bool:
    pulse = (frame + delay) // out_frames
    if pulse >= len(known_by_pulse):
        return True
    return frame >= known_by_pulse[pulse].size or bool(known_by_pulse[pulse][frame])


def known_frames(typed: TypedModel, given_frames: int, reach: int, ends: bool) -> Array:
    """Return which output frames are equal in all continuations of ``given_frames`` input frames."""
    rng = np.random.default_rng(given_frames)
    channels = int(next(iter(typed.inputs.values())).shape[1])
    head = next_noise(rng, 1, channels, given_frames)
    lengths = [*range(given_frames, given_frames + ENDS)] if ends else []
    runs: list[Array] = []
    for length in [*lengths, *[given_frames + reach + ENDS] * FAR]:
        tail = 4 * next_noise(rng, 1, channels, length - given_frames)
        try:
            (result,) = typed.run(np.concatenate([head, tail], 2)).values()
        except InputError:
            continue
        runs.append(result[0].astype(np.float64))
    frames = max(run.shape[1] for run in runs)
    low, high = np.full((runs[0].shape[0], frames), np.inf), np.full((runs[0].shape[0], frames), -np.inf)
    for run in runs:
        low[:, : run.shape[1]] = np.minimum(low[:, : run.shape[1]], run)
        high[:, : run.shape[1]] = np.maximum(high[:, : run.shape[1]], run)
    return ((high - low) <= 1e-6 * np.maximum(1.0, np.abs(high))).all(axis=0)
