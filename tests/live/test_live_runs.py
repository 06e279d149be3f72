"""Live runs against the real PortAudio, on a JACK server."""

import pytest

from tests.live.own_process import in_own_process


@pytest.mark.parametrize(
    "run",
    [
        pytest.param('play_exactly("worker", 480, 480)', marks=pytest.mark.slow),
        pytest.param('play_exactly("callback", 480, 480)', marks=pytest.mark.slow),
        'play_exactly("worker", 512, 480)',
        'play_exactly("callback", 160, 256)',
        'cancel_echo("worker", 480)',
        pytest.param('cancel_echo("callback", 160)', marks=pytest.mark.slow),
        "run_resampled()",
        "run_freewheeling()",
    ],
)
def test_a_run_on_jack_succeeds(run: str) -> None:
    print(in_own_process(run, "jack_runs").stdout)
