"""Servers and devices that go away, hang, and come back, against the real PortAudio."""

import pytest

from tests.live.own_process import in_own_process


@pytest.mark.parametrize("scenario", ["jack_killed", "pulse_killed", "pulse_unplugged"])
def test_a_stream_returns_with_its_server_or_device(scenario: str) -> None:
    in_own_process(scenario)


@pytest.mark.parametrize(
    "scenario",
    ["jack_stopped_and_left", pytest.param("jack_gone_before_the_end", marks=pytest.mark.slow)],
)
def test_a_process_ends_well_without_its_server(scenario: str) -> None:
    in_own_process(scenario)


@pytest.mark.parametrize("scenario", ["jack_hangs", pytest.param("pulse_hangs", marks=pytest.mark.slow)])
def test_calls_time_out_while_a_server_hangs(scenario: str) -> None:
    in_own_process(scenario)


@pytest.mark.parametrize(
    "scenario", ["through_python", "beside_sounddevice", pytest.param("fork_child", marks=pytest.mark.slow)]
)
def test_runs_work_through_python_and_in_a_child(scenario: str) -> None:
    in_own_process(scenario)
