"""Live runs against the real PortAudio, on a server of JACK."""

import pytest

from tests.live.own_process import in_own_process


@pytest.mark.parametrize(
    "run",
    [
        'exact("worker", 480, 480)',
        'exact("callback", 480, 480)',
        'exact("worker", 512, 480)',
        'exact("callback", 160, 256)',
        'cancelled("worker", 480)',
        'cancelled("callback", 160)',
        "resampled()",
        "freewheeling()",
    ],
)
def test_on_jack(run: str) -> None:
    print(in_own_process(run, "runs").stdout)
