"""The text of every form of events, and files that are whole or not there."""

import json
import os
import re
from pathlib import Path

import pytest

from pulse.errors import CopyError, InputError
from streaming.events import Event, EventsFile
from streaming.events.event_formats import CsvFormat, JsonLinesFormat
from streaming.events.writers import EventsStream

EVENTS = [
    Event(0.5, None, "speech", 0.75, 0.6),
    Event(0.5, 1.25, "a <b> & c", 0.875, 1.5),
    Event(3661.0625, 3662.0, "one\ntwo\t--> three", 1.0, 3663.0),
]
TEXTS = {
    "csv": "start_s,end_s,label,score,known_s\r\n"
    "0.500000,,speech,0.75,0.600000\r\n"
    "0.500000,1.250000,a <b> & c,0.875,1.500000\r\n"
    "3661.062500,3662.000000,one two --> three,1,3663.000000\r\n",
    "txt": "0.500000\t1.250000\ta <b> & c\n3661.062500\t3662.000000\tone two --> three\n",
    "rttm": "SPEAKER my_talk 1 0.500 0.750 <NA> <NA> a_<b>_&_c <NA> <NA>\n"
    "SPEAKER my_talk 1 3661.062 0.938 <NA> <NA> one_two_-->_three <NA> <NA>\n",
    "srt": "1\n00:00:00,500 --> 00:00:01,250\na <b> & c\n\n2\n01:01:01,062 --> 01:01:02,000\none two -> three\n\n",
    "vtt": "WEBVTT\n\n00:00:00.500 --> 00:00:01.250\na &lt;b&gt; &amp; c\n\n"
    "01:01:01.062 --> 01:01:02.000\none two --&gt; three\n\n",
    "jsonl": '{"start_s": 0.5, "end_s": null, "label": "speech", "score": 0.75, "known_s": 0.6}\n'
    '{"start_s": 0.5, "end_s": 1.25, "label": "a <b> & c", "score": 0.875, "known_s": 1.5}\n'
    '{"start_s": 3661.0625, "end_s": 3662.0, "label": "one\\ntwo\\t--> three", "score": 1.0, "known_s": 3663.0}\n',
}


@pytest.mark.parametrize("suffix", TEXTS)
def test_events_are_written_as_text_at_the_end(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    with EventsFile(path, "my talk") as file:
        for number in range(3):
            file.write(EVENTS[number : number + 1])
            assert not path.exists()
    assert path.read_bytes().decode() == TEXTS[suffix]
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", TEXTS)
def test_no_events_are_a_file_too(tmp_path: Path, suffix: str) -> None:
    with EventsFile(tmp_path / f"out.{suffix.upper()}"):
        pass
    head = {"csv": "start_s,end_s,label,score,known_s\r\n", "vtt": "WEBVTT\n\n"}.get(suffix, "")
    assert (tmp_path / f"out.{suffix.upper()}").read_bytes().decode() == head


def test_a_failed_run_keeps_the_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("before")
    with pytest.raises(KeyError), EventsFile(path) as file:
        file.write(EVENTS)
        raise KeyError
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    formats = re.escape(".csv, .txt, .rttm, .srt, .vtt, .jsonl")
    with pytest.raises(InputError, match=f"out.npy: events are written as {formats}, not .npy$"):
        EventsFile(tmp_path / "out.npy")
    with pytest.raises(InputError, match=r"not this$"):
        EventsFile("out")
    with pytest.raises(InputError, match="no such folder; make it first"):
        EventsFile(tmp_path / "none" / "out.csv")
    with EventsFile(tmp_path / "out.csv") as file, pytest.raises(CopyError, match="it writes one file"):
        file.__reduce_ex__(4)


def test_a_pipe_has_each_event_at_once() -> None:
    reading, writing = os.pipe()
    with EventsStream("standard output", writing, JsonLinesFormat()) as stream:
        for event in EVENTS:
            stream.write([event])
            line = os.read(reading, 1 << 16).decode()
            assert json.loads(line) == event.as_dict()
            assert line.endswith("\n")
        os.close(reading)
        with pytest.raises(InputError, match="standard output: cannot be written"):
            stream.write(EVENTS)


def test_a_pipe_has_the_head_of_a_table_before_the_first_event() -> None:
    reading, writing = os.pipe()
    with EventsStream("pipe", writing, CsvFormat()):
        assert os.read(reading, 100) == b"start_s,end_s,label,score,known_s\r\n"
    assert os.read(reading, 100) == b""
    os.close(reading)
