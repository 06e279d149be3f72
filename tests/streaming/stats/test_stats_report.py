"""pulse report: a file of statistics as text, as JSON and as a picture."""

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from streaming.stats.columns import Columns
from streaming.stats.live_statistics import LiveStatistics
from streaming.stats.reader import read_stats
from streaming.stats.stats_report import worst_intervals
from tests.streaming.command import pulse, refusal
from tests.streaming.stats.simulated_statistics import SETUP, Simulation, write

pytestmark = pytest.mark.usefixtures("working_folder")

EVENTS = {
    4: {"frames_silent": 480, "output_underflows": 2},
    9: {"frames_lost": 480, "pulses_dropped": 3, "input_overflows": 1},
    12: {"stalls": 1, "reopened": 1},
}


@pytest.fixture(scope="module")
def bad() -> list[LiveStatistics]:
    return list(
        Simulation(slow={4: 25, 7: 4}, notes={12: "opened again after 1.3 s"}).series(20, events=EVENTS)
    )


@pytest.fixture(scope="module")
def good() -> list[LiveStatistics]:
    return list(Simulation().series(3))


@pytest.fixture
def text(bad: list[LiveStatistics], tmp_path: Path) -> str:
    """The report of a run with problems."""
    return pulse("report", write(tmp_path / "out.jsonl", bad)).stdout


def test_the_text_report_names_model_devices_and_settings(text: str) -> None:
    lines = [line.split() for line in text.splitlines()]
    assert ["model", "denoise,", "numba", "f32"] in lines
    assert ["devices", "USB", "Audio", "->", "Headphones"] in lines
    assert "priority: normal instead of 70: no right to it; raise `ulimit -r`" in text


def test_the_text_report_states_counts_and_times(text: str, bad: list[LiveStatistics]) -> None:
    assert "20.0 s, 2,000 pulses in 2,000 callbacks" in text
    assert "42.1 ms end to end = device in 10.0 + re-blocking 3.3 + resampling 1.2" in text
    compute = bad[-1].compute.summary()
    (line,) = (line for line in text.splitlines() if line.startswith("compute "))
    assert f"{compute.p99_us / 1e3:.2f} ms" in line


def test_the_text_report_explains_problems_with_options(text: str) -> None:
    """Remedies are spelled as options, not as parameters."""
    assert "missed by " in text
    assert "--headroom" in text
    assert "headroom=" not in text


def test_the_text_report_lists_the_worst_intervals(text: str) -> None:
    lines = [line.split() for line in text.splitlines()]
    for heading in ("times", "end-to-end delay", "worst intervals"):
        assert heading.split() in lines
    assert "late pulses, 480 silent frames, 2 output underflows" in text
    assert "1 stall, 1 reopening; opened again after 1.3 s" in text
    assert " 0:20" not in text


def test_a_setting_is_reported_once(good: list[LiveStatistics], tmp_path: Path) -> None:
    noted = [
        replace(interval, notes=(str(SETUP.realtime_settings[0]), "something else")) for interval in good
    ]
    path = write(tmp_path / "out.jsonl", noted, replace(SETUP, block_frames=0, output=None))
    text = pulse("report", path).stdout
    assert text.count("priority: normal instead of 70") == 1
    assert "something else" in text
    assert "USB Audio -> none" in text
    assert "block size chosen by the device" in text


def test_a_good_run_is_reported_as_such(good: list[LiveStatistics], tmp_path: Path) -> None:
    text = pulse("report", write(tmp_path / "out.jsonl", good)).stdout
    assert "nothing was late, lost or silent, and the audio system reports no xrun" in text


def test_the_report_in_json_has_every_part(bad: list[LiveStatistics], tmp_path: Path) -> None:
    details = json.loads(pulse("report", write(tmp_path / "out.jsonl", bad), "--json").stdout)
    assert details["complete"] is True
    assert details["statistics"]["counters"]["frames_silent"] == 480
    assert details["statistics"]["total"]["p99_us"] == pytest.approx(bad[-1].summary().total.p99_us)
    delay = details["end_to_end"]
    assert delay["total_s"] == pytest.approx(sum(stage["seconds"] for stage in delay["stages"]))
    assert sum(row["count"] for row in details["histogram"]) == 2000
    assert {4, 7, 9, 12} < {moment["at_s"] for moment in details["worst"]}
    assert {problem["name"] for problem in details["problems"]} == {
        "late",
        "silent",
        "lost",
        "xrun",
        "device",
    }


def test_worst_intervals_have_problems_or_are_slowest(bad: list[LiveStatistics], tmp_path: Path) -> None:
    stats = read_stats(write(tmp_path / "out.jsonl", bad))
    assert [moment.at_s for moment in worst_intervals(stats, 4)] == [4, 7, 9, 12]
    assert [moment.at_s for moment in worst_intervals(stats, 3)] == [4, 9, 12]
    (first,) = worst_intervals(stats, 1)
    assert first.new.missed > 0
    assert first.longest_us > 25_000
    assert (first.clock - stats.start_time).total_seconds() == 4


def test_a_killed_run_is_reported(bad: list[LiveStatistics], tmp_path: Path) -> None:
    path = write(tmp_path / "out.jsonl", bad, end=False)
    path.write_bytes(path.read_bytes()[:-100])
    warnings.simplefilter("default")
    result = pulse("report", path)
    assert "19.0 s, 1,900 pulses" in result.stdout
    assert "opened again after 1.3 s" in result.stdout
    assert result.stderr == (
        f"warning: {path}: ends in the middle of a line, at 19.0 s; the run was killed or still runs\n"
    )


def test_files_that_are_not_reports_are_refused(good: list[LiveStatistics], tmp_path: Path) -> None:
    path = write(tmp_path / "out.jsonl", good)
    assert "no such file; check the path" in refusal("report", tmp_path / "none.jsonl")
    assert "is the input; write to another file" in refusal("report", path, "-o", path)
    assert "a picture is written as .png, .svg, .pdf, not .txt" in refusal(
        "report", path, "-o", tmp_path / "a.txt"
    )


def test_without_matplotlib_the_extra_is_named(
    good: list[LiveStatistics], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "out.jsonl", good)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    message = refusal("report", path, "-o", tmp_path / "latency.png")
    assert "pip install 'pulse-stream[report]'" in message
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]


def test_columns_merge_many_intervals(bad: list[LiveStatistics], tmp_path: Path) -> None:
    stats = read_stats(write(tmp_path / "out.jsonl", bad))
    unmerged, few = Columns.of(stats), Columns.of(stats, 6)
    assert (unmerged.merged, few.merged) == (1, 4)
    assert unmerged.edges_s.tolist() == list(range(21))
    assert few.edges_s.tolist() == [0, 4, 8, 12, 16, 20]
    assert few.max_us.tolist() == unmerged.max_us.reshape(5, 4).max(1).tolist()
    assert few.p99_us.tolist() == unmerged.p99_us.reshape(5, 4).max(1).tolist()
    assert few.p50_us.tolist() == np.median(unmerged.p50_us.reshape(5, 4), 1).tolist()
    assert few.problems["silent"].tolist() == [0, 480, 0, 0, 0]
    assert few.problems["device"].tolist() == [0, 0, 0, 2, 0]


def test_columns_state_problems_and_their_unit(bad: list[LiveStatistics], tmp_path: Path) -> None:
    columns = Columns.of(read_stats(write(tmp_path / "out.jsonl", bad)))
    assert {name: columns.extents[name] for name in ("silent", "lost", "device")} == {
        "silent": "10.0 ms",
        "lost": "40.0 ms",
        "device": "1 stall",
    }
    assert columns.unit == ("seconds", 1.0)


def test_an_interval_without_pulses_is_a_gap(good: list[LiveStatistics], tmp_path: Path) -> None:
    still = replace(good[-1], elapsed_s=4.0)
    columns = Columns.of(read_stats(write(tmp_path / "out.jsonl", [*good, still])))
    assert np.isnan(columns.max_us).tolist() == [False, False, False, True]


@pytest.mark.parametrize("unit", [("minutes", 60.0), ("hours", 3600.0)])
def test_long_runs_have_larger_units(
    good: list[LiveStatistics], tmp_path: Path, unit: tuple[str, float]
) -> None:
    late = [replace(interval, elapsed_s=interval.elapsed_s * unit[1] * 3) for interval in good]
    columns = Columns.of(read_stats(write(tmp_path / "out.jsonl", late)))
    assert columns.unit == unit


def test_a_picture_is_drawn_of_any_run(
    bad: list[LiveStatistics], good: list[LiveStatistics], tmp_path: Path
) -> None:
    image = pytest.importorskip("matplotlib.image", reason="an extra: pip install 'pulse-stream[report]'")
    still = [replace(interval, total=interval.total.difference_from(interval.total)) for interval in good[:1]]
    silent = replace(SETUP, input=None, output=None)
    for name, series, setup in (("bad", bad, SETUP), ("good", good, SETUP), ("still", still, silent)):
        path = write(tmp_path / f"{name}.jsonl", series, setup)
        target = tmp_path / f"{name}.png"
        assert "model" in pulse("report", path, "-o", target).stdout
        picture = image.imread(target)
        assert picture.shape == (1230, 1650, 4)
        assert 0.75 < (picture[..., :3].min(-1) > 0.99).mean() < 0.97, "mostly white"
    assert (tmp_path / "bad.png").stat().st_mode & 0o444


def test_a_picture_is_written_as_svg(bad: list[LiveStatistics], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="an extra: pip install 'pulse-stream[report]'")
    path = write(tmp_path / "out.jsonl", bad)
    pulse("report", path, "-o", tmp_path / "latency.svg")
    assert (tmp_path / "latency.svg").read_text().startswith("<?xml")
    assert "cannot be written" in refusal("report", path, "-o", tmp_path / "none" / "latency.svg")


LONG = "HDA Intel PCH: ALC3246 Analog (hw:0,0) with a name that says where it stands and what it is for"
NAMES = {
    "short": ("denoise", "USB Audio", "Headphones"),
    "long": ("denoise", LONG, LONG[::-1]),
    "one word": ("model_" * 40, "x" * 500, "a/" * 300),
    "mathematics": ("$x", "^_$", "\\frac"),
    "no UTF-8": ("m\udce9", "in\udce9.wav", "out\n.wav"),
    "no font": ("模型", "麦克风", "扬声器"),
}


@pytest.mark.parametrize(
    "name",
    [
        "short",
        "one word",
        *(pytest.param(name, marks=pytest.mark.slow) for name in [*NAMES][1:] if name != "one word"),
    ],
)
def test_a_picture_holds_its_text(
    bad: list[LiveStatistics], good: list[LiveStatistics], tmp_path: Path, name: str
) -> None:
    """All of it is inside the picture, and no label is on another one."""
    pytest.importorskip("matplotlib", reason="an extra: pip install 'pulse-stream[report]'")
    from matplotlib.text import Text

    from streaming.stats.plot import draw, picture
    from streaming.stats.titles import ignore_missing_glyphs

    model, input_name, played = NAMES[name]
    setup = replace(SETUP, model=model, input=input_name, output=played)
    for series in (bad, good, good[:1]) if name == "short" else (bad,):
        stats = read_stats(write(tmp_path / "out.jsonl", series, setup))
        figure = picture(stats)
        with ignore_missing_glyphs():
            figure.draw_without_rendering()
        ticks = {
            label for axes in figure.axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())
        }
        texts = [text for text in figure.findobj(Text) if text.get_text() and text not in ticks]
        whole = figure.bbox
        for text in texts:
            box = text.get_window_extent()
            assert whole.x0 <= box.x0 <= box.x1 <= whole.x1, text.get_text()
            assert whole.y0 <= box.y0 <= box.y1 <= whole.y1, text.get_text()
        marks = [text.get_window_extent() for text in texts if text.get_fontsize() == 8]
        assert not any(mark.overlaps(other) for at, mark in enumerate(marks) for other in marks[:at])
        assert len(figure.get_suptitle().splitlines()) <= 6
    if name.startswith("no "):
        draw(stats, tmp_path / "out.png")


def test_a_title_is_broken_into_lines_that_fit() -> None:
    pytest.importorskip("matplotlib", reason="an extra: pip install 'pulse-stream[report]'")
    from streaming.stats.titles import fit_title, text_width_points

    assert fit_title(["one;", "two"], 500, 11, "normal") == "one; two"
    lines = fit_title(
        ["a few words;", "and some more"], 1.1 * text_width_points("and some more", 11), 11, "normal"
    )
    assert lines.splitlines() == ["a few words;", "and some more"]
    lines = fit_title(["word " * 100, "x" * 300], 100, 11, "bold").splitlines()
    assert len(lines) == 6
    assert lines[2].endswith("…")
    assert lines[5].endswith("…")
    assert fit_title(["in\udce9\n.wav"], 500, 11, "bold") == "in\\udce9 .wav"


def test_empty_stages_are_left_out(good: list[LiveStatistics], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="an extra: pip install 'pulse-stream[report]'")
    from streaming.stats.plot import picture

    def legend(**stages):
        delay = replace(SETUP.delay, **stages)
        series = [replace(interval, delay=delay) for interval in good]
        axes = picture(read_stats(write(tmp_path / "out.jsonl", series, replace(SETUP, delay=delay)))).axes[
            -1
        ]
        legend_box = axes.get_legend()
        return [] if legend_box is None else [text.get_text() for text in legend_box.get_texts()]

    assert legend() == [
        "device in 10.0",
        "re-blocking 3.3",
        "resampling 1.2",
        "headroom 5.0",
        "model 9.9",
        "device out 12.7",
    ]
    assert legend(device_in_s=0, resampling_s=0, device_out_s=0) == [
        "re-blocking 3.3",
        "headroom 5.0",
        "model 9.9",
    ]
    nothing = {"device_in_s", "reblocking_s", "resampling_s", "headroom_s", "model_s", "device_out_s"}
    assert legend(**dict.fromkeys(nothing, 0)) == []
