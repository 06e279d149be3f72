"""Files of statistics that are broken, foreign, cut or huge: read up to the damage, or refused with a reason."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulse.errors import InputError
from streaming.stats import reader as stats_reader
from streaming.stats.columns import Columns
from streaming.stats.live_statistics import LiveStatistics
from streaming.stats.reader import read_stats
from streaming.stats.stats_report import StatsReport
from tests.streaming.stats.simulated_statistics import Simulation, lines_of, read_quietly

HARMLESS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@pytest.fixture(scope="module")
def series() -> list[LiveStatistics]:
    return list(Simulation().series(5))


def refusal_of(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_stats(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    return text.removeprefix(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": is empty; such files are written by pulse run --live --stats FILE"),
        (b"\n", ": is not a statistics file;"),
        (b"time,level\n0,1\n", ": is not a statistics file;"),
        (b"RIFF\x00\x00\xff\xfe" * 1000, ": is not a statistics file;"),
        (b'{"a": 1}\n', ": is not a statistics file;"),
        (b"[1]\n", ": is not a statistics file;"),
        (b"[" * 100_000, ": is not a statistics file;"),
        (b"9" * 10_000 + b"\n", ": is not a statistics file;"),
        (b" " * (3 << 20), ": is not a statistics file;"),
    ],
    ids=["empty", "empty line", "CSV", "binary", "JSON", "list", "brackets", "digits", "spaces"],
)
def test_foreign_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(content)
    assert refusal_of(path).startswith(message)


def test_no_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    assert refusal_of(tmp_path / "none") == ": no such file; check the path"
    assert (
        refusal_of(tmp_path)
        == ": cannot be read (Is a directory); such files are written by pulse run --live --stats FILE"
    )


def test_a_header_alone_and_half_of_one_are_refused(tmp_path: Path, path: Path) -> None:
    header = path.read_bytes().splitlines(keepends=True)[0]
    other = tmp_path / "h.jsonl"
    other.write_bytes(header)
    assert refusal_of(other) == ": holds no measurement; the run ended before its first interval"
    other.write_bytes(header[:100])
    assert refusal_of(other).startswith(": is not a statistics file;")


def change_line(line: dict[str, float | str], place: list[Any], value: Any) -> dict[str, float | str]:
    """A line with another value where ``place`` leads to; ``...`` takes it away."""
    line = json.loads(json.dumps(line))
    inside = line
    for name in place[:-1]:
        inside = inside[name]
    if value is ...:
        del inside[place[-1]]
    else:
        inside[place[-1]] = value
    return line


@pytest.mark.parametrize(
    ("number", "place", "value", "message"),
    [
        (1, ["version"], 2, ": has version 2 of the format, this one reads 1; use the pulse that wrote it"),
        (1, ["setup", "rate_hz"], 0, ", line 1: setup.rate_hz is not more than 0; the file is broken"),
        (
            1,
            ["setup", "deadline_s"],
            "x",
            ", line 1: setup.deadline_s: 'x' is not a finite number; the file is",
        ),
        (1, ["setup", "pulse_frames"], True, ", line 1: setup.pulse_frames: true is not a count"),
        (
            1,
            ["setup", "realtime_settings", 0, "name"],
            4,
            ", line 1: setup.realtime_settings.0.name: 4 is not a string",
        ),
        (1, ["started"], "noon", ", line 1: started: Invalid isoformat string: 'noon'; the file is broken"),
        (2, ["line"], "other", ", line 2: is neither an interval nor a summary; the file is broken"),
        (2, ["interval"], ..., ", line 2: None is not an object"),
        (2, ["interval", "total", "p50_us"], ..., ", line 2: total: p50_us is missing"),
        (
            2,
            ["interval", "total", "p50_us"],
            1e400,
            ", line 2: is not valid JSON (Infinity is not a JSON number)",
        ),
        (2, ["interval", "total"], [], ", line 2: total: [] is not an object"),
        (2, ["interval", "new", "missed"], -1, ", line 2: new.missed: -1 is not a count"),
        (
            2,
            ["interval", "new", "missed"],
            1 << 70,
            ", line 2: new.missed: 1180591620717411303424 is not a count",
        ),
        (2, ["interval", "span_s"], 0, ", line 2: time does not advance"),
        (2, ["interval", "at_s"], 1e300, ", line 2: time does not advance"),
        (1, ["started"], "9999-12-31T00:00:00", ", line 1: started: date value out of range"),
        (3, ["interval", "at_s"], 1, ", line 3: time does not advance"),
        (3, ["times", "classes"], [[1]], ", line 3: classes.0: 1 value instead of 2"),
        (3, ["times", "classes"], [[1, 1 << 62]] * 4, ", line 3: counts more than possible"),
        (7, ["times", "total"], ..., ", line 7: times.total is missing"),
        (7, ["statistics", "delay"], None, ", line 7: statistics.delay: None is not an object"),
    ],
    ids=[
        "later version",
        "rate of 0",
        "deadline as text",
        "pulse as a boolean",
        "number as a name",
        "start without a date",
        "unknown line",
        "no interval",
        "no percentile",
        "infinite percentile",
        "list as the total",
        "negative count",
        "count beyond 64 bits",
        "empty interval",
        "time beyond the range",
        "start beyond the range",
        "time runs back",
        "class of one value",
        "total count too large",
        "no total of times",
        "null as the delay",
    ],
)
def test_a_broken_value_is_refused(
    tmp_path: Path, path: Path, number: int, place: list[str], value: Any, message: str
) -> None:
    lines = lines_of(path)
    lines[number - 1] = change_line(lines[number - 1], place, value)
    other = tmp_path / "b.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert refusal_of(other).startswith(message)


def test_fields_of_later_versions_are_ignored(tmp_path: Path, path: Path) -> None:
    lines = [line | {"more": [1, {"x": None}]} for line in lines_of(path)]
    other = tmp_path / "m.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_stats(other).statistics == read_stats(path).statistics


def test_broken_lines_and_two_runs_in_a_file_are_refused(tmp_path: Path, path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    other = tmp_path / "t.jsonl"
    other.write_bytes(b"".join([*lines[:2], b'{"line": "inter\n', *lines[2:]]))
    assert refusal_of(other).startswith(", line 3: is not valid JSON (")
    other.write_bytes(b"".join([*lines[:2], b"7\n", *lines[2:]]))
    assert refusal_of(other).startswith(", line 3: is not an object")
    other.write_bytes(b"".join(lines) + b"".join(lines))
    assert refusal_of(other) == f", line {len(lines) + 1}: follows the summary; give each run its own file"


def test_too_large_files_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_reader, "MAX_FILE_BYTES", 2 << 10)
    assert ": is larger than 0 MiB; take the first line and the last ones: (head -n 1 " in refusal_of(path)


def test_the_last_lines_hold_statistics_of_the_whole_file(tmp_path: Path, path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    part = tmp_path / "part.jsonl"
    part.write_bytes(b"".join([lines[0], *lines[-3:]]))
    stats = read_stats(part)
    assert [interval.at_s for interval in stats.intervals] == [4, 5]
    assert stats.statistics == read_stats(path).statistics


@settings(max_examples=60, suppress_health_check=HARMLESS, deadline=None)
@given(st.data())
def test_truncated_files_are_read_or_refused(path: Path, data: st.DataObject) -> None:
    whole = path.read_bytes()
    ends = [place for place, byte in enumerate(whole) if byte == 10]
    place = data.draw(st.integers(0, len(whole)))
    other = path.with_name("cut.jsonl")
    other.write_bytes(whole[:place])
    complete = sum(end <= place for end in ends)  # with or without its end of line
    if complete < 2:
        refusal_of(other)
    elif complete == len(ends):
        assert read_stats(other).complete
    else:
        assert len(read_quietly(other).intervals) == complete - 1


@settings(max_examples=60, suppress_health_check=HARMLESS, deadline=None)
@given(st.data())
def test_files_with_a_wrong_byte_are_read_or_refused(path: Path, data: st.DataObject) -> None:
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    other = path.with_name("wrong.jsonl")
    other.write_bytes(whole)
    try:
        stats = read_quietly(other)
    except InputError as error:
        assert str(error).startswith(str(other))
    else:
        report = StatsReport(stats)
        assert str(report)
        assert report.to_markdown()
        assert json.dumps(report.as_dict(), allow_nan=False)
        assert Columns.of(stats, 2).edges_s.size == Columns.of(stats, 2).p99_us.size + 1


def test_reading_reports_its_progress(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_reader, "LINES_PER_REPORT", 2)
    steps = []
    read_stats(path, lambda read, whole: steps.append((read, whole)))
    size = path.stat().st_size
    assert [whole for _, whole in steps] == [size] * 3
    assert 0 < steps[0][0] < steps[1][0] < steps[2][0] <= size
