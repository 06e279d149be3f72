"""An event comes out of a session at the frame that ``known_s`` states."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pulse.errors import InputError
from streaming import Session
from streaming.events import FrameClock, Segments
from tests.streaming.events.blocks import walk, whole
from tests.streaming.models import decimating_model, ending_model, filter_model, program

HZ = 30


@pytest.mark.parametrize("pulse", [3, 6, 15])
@pytest.mark.parametrize(
    ("model", "name", "shape"), [(filter_model, "y", (1, -1)), (decimating_model, "third", (1, -1, 2))]
)
def test_known_s_is_the_time_at_which_an_event_comes(
    model: Callable[..., Any], name: str, shape: tuple[Any, ...], pulse: int
) -> None:
    stepped = program(model(), pulse)
    x = walk(np.random.default_rng(3), 1200).astype(np.float32).reshape(shape)
    port = next(port for port in stepped.outputs if port.name == name)
    clock = FrameClock.of_port(port, HZ)
    offline = program(model(), pulse)
    session = Session(offline)
    frames = np.concatenate([session.push(x)[name].ravel(), session.flush()[name].ravel()])
    detector = Segments(clock, float(np.median(frames)), min_silence_s=0.2, starts=True)
    session, came = Session(stepped), []
    for number in range(x.shape[1]):
        events = detector.push(session.push(x[:, number : number + 1])[name].ravel())
        came += [(event, (number + 1) / HZ) for event in events]
    assert len(came) > 10
    assert all(event.known_s == at_s for event, at_s in came)
    plain = whole(Segments(clock.rate_hz, float(np.median(frames)), min_silence_s=0.2, starts=True), frames)
    times = [(event.start_s, event.end_s) for event, _ in came]
    assert times == [(event.start_s, event.end_s) for event in plain][: len(times)]


def test_an_output_without_time_is_refused() -> None:
    port = next(port for port in program(ending_model(), 4).outputs if port.name == "last")
    with pytest.raises(InputError, match=r"^last: has no time axis, so no events; choose another output$"):
        FrameClock.of_port(port, HZ)
