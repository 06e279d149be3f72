"""A recipe from a microphone to a loudspeaker, on a JACK server: GTCRN with its STFT and the inverse."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.live.server import JackServer, jack_server
from bench.live.steal_monitor import monitor_steal_time
from bench.models.recipe_pages import lay_out_recipe
from tests.demos.measurements import assert_measured
from tests.live.jack_playback import JACK, demo_command, play_sound, pulse_command
from tests.live.servers import server_or_skip, use_server
from tests.shared import shared_path

pytestmark = pytest.mark.usefixtures("usual_signals")

DEVICES = ("--mic", JACK, "--speaker", JACK, "--seconds")
TROUBLE = ("frames_lost", "frames_silent", "frames_skipped", "pulses_dropped", "missed", "stalls", "faults")
XRUNS = ("input_underflows", "input_overflows", "output_underflows", "output_overflows")
HOP_S = 256 / 16_000


def run_recipe(server: JackServer, recipe: Path, seconds: int) -> dict[str, Any]:
    """Run ``pulse run RECIPE --live --json`` and return its last report."""
    command = (*pulse_command(), "run", str(recipe), "--live", *DEVICES, str(seconds), "--json")
    with play_sound(server, *command, times=2 + seconds // 4) as program:
        printed, problem = program.communicate(timeout=seconds + 60)
    assert program.returncode == 0, printed + problem
    return json.loads(printed)


def assert_delay(server: JackServer, recipe: Path, report: dict[str, Any], seconds: int) -> None:
    """The stages of the delay are listed, and their sum equals the probe's measurement."""
    delay = report["statistics"]["delay"]
    assert delay["model_s"] == delay["headroom_s"] == HOP_S
    assert delay["resampling_s"] > 0
    assert delay["device_in_s"] > 0
    assert delay["device_out_s"] > 0
    assert delay["reblocking_s"] == 0
    between_s = delay["resampling_s"] + delay["headroom_s"] + delay["model_s"]
    assert delay["frames"] == round(between_s * server.rate_hz)
    with play_sound(
        server, *demo_command("latency_probe.py"), "--model", str(recipe), *DEVICES, str(seconds), times=5
    ) as probe:
        printed, problem = probe.communicate(timeout=seconds + 60)
    assert probe.returncode == 0, printed + problem
    assert_measured(printed)
    assert f"reported   {delay['frames']} frames" in printed


def test_a_recipe_runs_on_jack(tmp_path: Path) -> None:
    """The recipe runs and has its delay; late blocks of a machine with other work are counted elsewhere."""
    recipe = lay_out_recipe("gtcrn.toml", tmp_path, shared_path("models").parent)
    with server_or_skip(jack_server()) as server, use_server(server):
        report = run_recipe(server, recipe, 2)
        assert report["statistics"]["counters"]["pulses"] > 1 / HOP_S
        assert report["setup"]["model"] == "gtcrn"
        assert report["setup"]["pulse_frames"] == 256
        assert_delay(server, recipe, report, 2)


@pytest.mark.slow
def test_a_minute_loses_no_frame(tmp_path: Path) -> None:
    """A minute has no xrun and no late block; if it has, the message says how long the host stopped the machine."""
    recipe = lay_out_recipe("gtcrn.toml", tmp_path, shared_path("models").parent)
    with server_or_skip(jack_server()) as server, use_server(server):
        with monitor_steal_time() as stolen:
            report = run_recipe(server, recipe, 60)
        print(json.dumps(report["statistics"], indent=1))
        counters = report["statistics"]["counters"]
        trouble = {name: counters[name] for name in (*TROUBLE, *XRUNS) if counters[name]}
        print(trouble, f"longest stop {stolen.longest_ns / 1e6:.1f} ms")
        assert not trouble, f"the host stopped this machine for up to {stolen.longest_ns / 1e6:.1f} ms"
        assert counters["pulses"] >= 59 / HOP_S
        assert_delay(server, recipe, report, 5)
