"""The display of a live run, from recorded statistics, at 80 columns and other widths."""

import io
from collections.abc import Iterator
from dataclasses import replace
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from streaming.cli.live.display import ASCII, BLOCK_SIGNS, KeyCommand, Signs, render
from streaming.cli.live.display_state import HOLD_S, DisplayState, Peak, decibels
from streaming.cli.live.view import LiveView, plain_line
from streaming.stats.live_statistics import LiveStatistics
from streaming.stats.setup import Setup
from streaming.stats.summary import LiveReport, span
from streaming.stats.ticks import Ticks
from tests.streaming.stats.simulated_statistics import SETUP, Simulation

CONTROLS = (KeyCommand("m", "mute"), KeyCommand("b", "bypass"), KeyCommand("q", "quit"))
SNAPSHOT = Path(__file__).with_name("live_view.txt")


@pytest.fixture(scope="module")
def series() -> list[LiveStatistics]:
    events = {6: {"frames_silent": 480, "output_underflows": 2}}
    return list(
        Simulation(slow={4: 6, 6: 20}, notes={7: "opened again after 1.3 s"}).series(12, events=events)
    )


def state_of(series: Iterator[Any] | list[LiveStatistics], interval_s: float = 1.0) -> DisplayState:
    state = DisplayState(Ticks(interval_s))
    for statistics in series:
        state = state.next_state(statistics)
    return state


def shown_text(
    state: DisplayState,
    width: int = 80,
    setup: Setup = SETUP,
    controls: tuple[KeyCommand, KeyCommand, KeyCommand] = CONTROLS,
    active: frozenset[Any] | frozenset[str] = frozenset(),
    signs: Signs = BLOCK_SIGNS,
) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(render(setup, state, controls, active, signs))
    return console.file.getvalue()


def test_the_display_equals_its_snapshot(series: list[LiveStatistics]) -> None:
    assert shown_text(state_of(series), active=frozenset({"bypass"})) == SNAPSHOT.read_text()


@pytest.mark.parametrize("width", [60, 80, 132, 250])
@pytest.mark.parametrize("channels", [0, 1, 2, 8, 32])
def test_no_line_is_too_long(width: int, channels: int) -> None:
    series = [
        replace(interval, notes=("a note that is long, " * 12,))
        for interval in Simulation(channels=channels).series(3)
    ]
    named = replace(SETUP, model="a model of a long name " * 10, input="Gerät 音声 " * 20)
    lines = shown_text(state_of(series), width, named).splitlines()
    assert max(Text(line).cell_len for line in lines) <= width
    assert len(lines) <= 24


def test_nothing_is_shown_before_the_first_statistics() -> None:
    assert shown_text(DisplayState()).strip() == ""


def test_a_terminal_without_other_signs_gets_plain_ones(series: list[LiveStatistics]) -> None:
    text = shown_text(state_of(series), signs=ASCII, active=frozenset({"mute"}))
    assert text.isascii()
    assert "m mute (on)" in text
    assert "#: 10 ms" in text


def test_input_alone_has_the_whole_width(series: list[LiveStatistics]) -> None:
    inputs_only = [replace(interval, levels_out=()) for interval in series]
    lines = shown_text(state_of(inputs_only), setup=replace(SETUP, output=None)).splitlines()
    assert lines[1].strip() == "in USB Audio"
    assert len(lines[2]) == 80
    assert "out " not in lines[1]


def test_of_many_channels_the_rest_is_summarised(series: list[LiveStatistics]) -> None:
    loud = replace(series[0], levels_in=(0.1,) * 40 + (1.0,), levels_out=(0.1,))
    lines = shown_text(state_of([loud])).splitlines()
    assert lines[10].strip() == "and 33 more, the loudest 0.0"


@pytest.mark.parametrize(
    ("level", "text"),
    [(0.0, " -inf"), (1.0, "  0.0"), (2.0, "  6.0"), (1e-7, " -inf"), (nan, "  nan"), (inf, "  inf")],
)
def test_levels_are_shown_in_decibels(series: list[LiveStatistics], level: float, text: str) -> None:
    line = shown_text(state_of([replace(series[0], levels_in=(level,), levels_out=())])).splitlines()[2]
    assert line.endswith(text)
    assert ("█" in line) == (level >= 1)


def test_a_peak_is_held_and_then_falls() -> None:
    peak = Peak(-20.0, -20.0, 0.0)
    for at_s, level, held_db in (
        (1.0, 0.5, decibels(0.5)),
        (1.5, 0.1, decibels(0.5)),
        (1.0 + HOLD_S, 0.1, decibels(0.5)),
        (1.1 + HOLD_S, 0.1, -20),
        (1.2 + HOLD_S, 0.2, decibels(0.2)),
        (1.3 + HOLD_S, 0.0, decibels(0.2)),
    ):
        peak = peak.next_peak(level, at_s)
        assert peak.held_db == pytest.approx(held_db), at_s
        assert peak.now_db == decibels(level), at_s


def test_a_peak_shows_nan_and_forgets_it() -> None:
    assert isnan(Peak(0.0, 0.0, 0.0).next_peak(nan, 0.1).held_db)
    assert Peak(nan, nan, 0.0).next_peak(0.1, 0.1 + HOLD_S).held_db == pytest.approx(-20)


def test_latencies_stand_against_the_deadline(series: list[LiveStatistics]) -> None:
    line = next(line for line in shown_text(state_of(series)).splitlines() if line.startswith("latency"))
    assert line.split()[1] == "▂▂▂▂▆▂!▂▂▂▂▂"
    assert line.endswith("█: 10 ms")
    still = state_of([*series, replace(series[-1], elapsed_s=13.0)])
    assert isnan(still.p99_us[-1])
    line = next(line for line in shown_text(still).splitlines() if line.startswith("latency"))
    assert line.startswith("latency  ▂▂▂▂▆▂!▂▂▂▂▂ ")


def test_only_whole_intervals_are_shown() -> None:
    often = list(Simulation().series(3, each_s=0.1))
    assert len(state_of(often).p99_us) == 3
    assert len(state_of(often, 0.5).p99_us) == 6
    whole = list(Simulation().series(3, each_s=0.1))
    assert state_of(whole[:19]).marked is whole[9]


def test_problems_are_counted(series: list[LiveStatistics]) -> None:
    text = " ".join(shown_text(state_of(series)).split())
    assert "1,200 pulses, 5 late pulses, 480 silent frames, 2 output underflows" in text
    good = " ".join(shown_text(state_of(Simulation().series(2))).split())
    assert "200 pulses, none late, nothing lost or silent" in good


def test_each_interval_is_one_line_without_a_terminal(series: list[LiveStatistics]) -> None:
    console = Console(file=io.StringIO(), width=80)
    with LiveView(SETUP, CONTROLS, console=console) as view:
        for statistics in Simulation(slow={1: 20}).series(3, each_s=0.1, events={1: {"frames_silent": 480}}):
            view.update(statistics)
    first, second, third = console.file.getvalue().splitlines()
    assert first.startswith("0:00:01  p99 1.")
    assert " of 10.00 ms, max 1." in first
    assert "load 12%" in first
    assert "dBFS" in first
    assert "480 silent frames" in second
    assert "silent" not in third


def test_a_note_is_shown_once(series: list[LiveStatistics]) -> None:
    lines = [plain_line(state_of(series[:number])) for number in range(1, 13)]
    assert ["opened again" in line for line in lines].count(True) == 1


def test_an_interval_without_pulses_says_so(series: list[LiveStatistics]) -> None:
    still = replace(series[0], elapsed_s=2.0)
    assert "0:00:02  no pulse  load" in plain_line(state_of([series[0], still]))


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet_shows_nothing(series: list[LiveStatistics], terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal)
    with LiveView(SETUP, CONTROLS, quiet=True, console=console) as view:
        view.update(series[0])
    assert console.file.getvalue() == ""


def test_a_terminal_is_left_as_it_was(series: list[LiveStatistics]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24, color_system=None)
    with pytest.raises(ZeroDivisionError), LiveView(SETUP, CONTROLS, console=console) as view:
        for statistics in series:
            view.update(statistics, frozenset({"mute"}))
        raise ZeroDivisionError
    text = console.file.getvalue()
    assert "mute ●" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    assert text.endswith("\x1b[2K"), "the display is gone"


def test_the_final_report_lists_all_of_the_run(series: list[LiveStatistics]) -> None:
    pairs = LiveReport(SETUP, series[-1].summary()).pairs()
    names = [name for name, _ in pairs]
    assert names[:3] == ["model", "pulse", "devices"]
    lines = dict(pairs)
    assert lines["ran"] == "12.0 s, 1,200 pulses in 1,200 callbacks"
    assert lines["frames"] == "576,000 in, 576,000 out"
    assert lines["latency"].startswith("p50 1.")
    assert lines["note"] == "opened again after 1.3 s"
    assert {"late", "silent", "xrun"} < set(names)
    *_, good = Simulation().series(2)
    assert LiveReport(SETUP, good.summary()).pairs()[-1][1].startswith("nothing was late, lost or silent")


def test_a_run_that_computed_nothing_is_shown_without_latency(series: list[LiveStatistics]) -> None:
    nothing = replace(series[0], total=series[0].total.difference_from(series[0].total))
    assert "latency" not in dict(LiveReport(SETUP, nothing.summary()).pairs())
    assert "no pulse" in plain_line(state_of([nothing]))
    assert shown_text(state_of([nothing]))


def test_spans_of_time_become_text() -> None:
    assert [span(seconds) for seconds in (0, 59.96, 60, 3599.9, 3600, 90_061)] == [
        "0.0 s", "60.0 s", "1:00", "59:59", "1:00:00", "25:01:01",
    ]  # fmt: skip
