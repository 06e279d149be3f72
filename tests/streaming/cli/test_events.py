"""pulse run --events: files of audio and frames, pipes, live runs."""

import csv
import json
import os
import pty
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from streaming.events import Segments
from tests.streaming.cli.pipes import LIMIT_S, command, pipe
from tests.streaming.command import features, pulse, refusal, report, save, voice, write_sound
from tests.streaming.events.blocks import walk, whole

pytestmark = pytest.mark.usefixtures("working_folder", "usual_signals")


def ahead(path: str, frames: int) -> str:
    """Write the identity of p [1, 1, T] whose output needs this many later frames."""
    weights = np.zeros((1, 1, 2 * frames + 1), np.float32)
    weights[0, 0, -1] = 1e-30  # changes nothing, but is waited for
    weights[0, 0, frames] = 1
    node = helper.make_node("Conv", ["p", "w"], ["q"], "ahead", pads=[frames, frames])
    return save(path, [node], {"p": [1, 1, "T"]}, {"q": [1, 1, "T"]}, {"w": weights})


def rows(path: str) -> list[tuple[str, ...]]:
    """The columns of a .csv: start, end, label, known."""
    with open(path, newline="") as file:
        return [(row["start_s"], row["end_s"], row["label"], row["known_s"]) for row in csv.DictReader(file)]


def bursts() -> str:
    """Write half a second at 8 kHz with a signal from 0.1 s to 0.2 s and from 0.3 s to 0.4 s."""
    sound = np.zeros(4000)
    sound[800:1600] = sound[2400:3200] = 0.75
    return write_sound("in.wav", sound, 8000, subtype="FLOAT")


@pytest.mark.parametrize("pulse_frames", [1, 7])
def test_the_delay_of_a_model_moves_no_time(pulse_frames: int) -> None:
    p = walk(np.random.default_rng(1), 300).astype(np.float32)
    np.save("p.npy", p[None, None])
    rows_of_delay = {}
    for delay in (0, 5, 23):
        model = ahead(f"ahead{delay}.onnx", delay)
        how = (
            "--rate",
            100,
            "--pulse",
            pulse_frames,
            "--events",
            "segments",
            "--event",
            "min_silence_s=0.05",
        )
        details = report("run", model, "p.npy", f"{delay}.csv", *how, "--backend", "numpy")
        rows_of_delay[delay] = rows(f"{delay}.csv")
        assert details["events"] == len(rows_of_delay[delay]) > 3
    expected = whole(Segments(100, min_silence_s=0.05), p)
    for delay, events in rows_of_delay.items():
        assert [event[:2] for event in events] == [
            (f"{event.start_s:.6f}", f"{event.end_s:.6f}") for event in expected
        ]
        known_frames = [
            -(-(round(event.known_s * 100) + delay) // pulse_frames) * pulse_frames for event in expected
        ]
        assert [event[3] for event in events][:-1] == [f"{frames / 100:.6f}" for frames in known_frames][:-1]


def test_sound_with_names_and_forms(tmp_path: Path) -> None:
    """The first output that is not sound is read."""
    model, sound = voice("model.onnx"), bursts()
    how = (
        *("--events", "segments", "--event", "threshold=0.5", "--event", "label=burst"),
        "--backend",
        "numpy",
    )
    assert "events      2" in pulse("run", model, sound, "out.txt", *how, "--pulse", 160).stdout
    assert (tmp_path / "out.txt").read_text() == "0.100000\t0.200000\tburst\n0.300000\t0.400000\tburst\n"
    pulse("run", model, sound, "out.rttm", *how)
    assert (tmp_path / "out.rttm").read_text().splitlines()[0] == (
        "SPEAKER in 1 0.100 0.100 <NA> <NA> burst <NA> <NA>"
    )
    pulse("run", model, sound, *how)
    assert [row[:2] for row in rows("model-events.csv")] == [
        ("0.100000", "0.200000"),
        ("0.300000", "0.400000"),
    ]


def test_text_and_classes_are_found(tmp_path: Path) -> None:
    """Detectors read classes from the last axis and take lists and files as parameters."""
    node = helper.make_node("Identity", ["x"], ["y"], "same")
    model = save("same.onnx", [node], {"x": [1, "T", 3]}, {"y": [1, "T", 3]})
    np.save("x.npy", np.eye(3, dtype=np.float32)[[0, 0, 1, 1, 2, 0]][None])
    (tmp_path / "tokens.txt").write_text("<blk> 0\n\u2581a 1\nb 2\n", "utf-8")
    how = ("--rate", 10, "--backend", "numpy")
    options = ("--event", "tokens=tokens.txt", "--event", "unit=phrase")
    pulse("run", model, "x.npy", "x.srt", *how, "--events", "ctc", *options)
    assert (tmp_path / "x.srt").read_text() == "1\n00:00:00,200 --> 00:00:00,500\nab\n\n"
    options = ("--event", "labels=none, dog,cat", "--event", "background=0")
    pulse("run", model, "x.npy", "x.vtt", *how, "--events", "argmax", *options)
    assert (tmp_path / "x.vtt").read_text() == (
        "WEBVTT\n\n00:00:00.200 --> 00:00:00.400\ndog\n\n00:00:00.400 --> 00:00:00.500\ncat\n\n"
    )


def test_a_pipe_gets_json_lines_or_the_requested_format(tmp_path: Path) -> None:
    model, sound = voice("model.onnx"), bursts()
    data = (tmp_path / sound).read_bytes()
    how = ("--events", "segments", "--event", "starts=yes", "--pulse", "80")
    out, errors = pipe(data, str(model), "-", "-", *how)
    events = [json.loads(line) for line in out.decode().splitlines()]
    assert [(event["start_s"], event["end_s"], event["known_s"]) for event in events] == [
        (0.1, None, 0.11),
        (0.1, 0.2, 0.21),
        (0.3, None, 0.31),
        (0.3, 0.4, 0.41),
    ]
    assert "events      4" in errors
    out, _ = pipe(data, str(model), "-", "-", *how, "--format", "vtt")
    assert out.decode().startswith("WEBVTT\n\n00:00:00.100 --> 00:00:00.200\nspeech\n\n")


def test_a_terminal_has_nothing_else_between() -> None:
    """A bar is not shown while events are printed; the report follows them."""
    voice("model.onnx")
    bursts()
    primary, terminal = pty.openpty()
    process = command(
        *("model.onnx", "in.wav", "-", "--events", "segments", "--pulse", "80"),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    screen = b""
    with suppress(OSError):  # of Linux, where the other side is closed
        while piece := os.read(primary, 1 << 16):
            screen += piece
    os.close(primary)
    assert process.wait(LIMIT_S) == 0
    lines = screen.decode().splitlines()
    assert [json.loads(line)["end_s"] for line in lines[:2]] == [0.2, 0.4]
    assert "model " in lines[2]
    assert "\x1b" not in lines[0] + lines[1]


def test_live_events_equal_events_of_the_file(tmp_path: Path) -> None:
    """A file as if a microphone gave it: the events of the run without --live, printed or written."""
    model, sound = voice("model.onnx"), bursts()
    how = ("--events", "segments", "--event", "pad_before_s=0.01")
    pulse("run", model, sound, "file.csv", *how, "--pulse", 80, "--backend", "numpy")
    live = ("--live", "--quiet", "--speaker", "none", "--pulse", "80")
    pulse("run", model, sound, *live, *how, "--frames", "live.csv", "--backend", "numpy")
    assert rows("live.csv") == rows("file.csv")
    assert len(rows("live.csv")) == 2
    out, errors = pipe(b"", str(model), sound, *live, *how)
    events = [json.loads(line) for line in out.decode().splitlines()]
    assert [(f"{event['start_s']:.6f}", f"{event['end_s']:.6f}") for event in events] == [
        row[:2] for row in rows("file.csv")
    ]
    assert "4,000 in" in errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            ("--events", "vad"),
            "--events: unknown detector 'vad'; choose one of segments, silero, "
            "fireredvad, triggers, ctc, argmax",
            id="unknown detector",
        ),
        (("--event", "threshold=1"), "--event threshold=1 needs --events, such as --events segments"),
        (("--events", "silero", "--event", "a"), "--event a: write a parameter as NAME=VALUE"),
        (
            ("--events", "silero", "--event", "onset=run"),
            "silero: unknown parameter 'onset'; choose one of threshold, ",
        ),
        (("--events", "segments", "--event", "threshold=x"), "threshold=x: must be a number"),
        (("--events", "segments", "--event", "column=1.5"), "column=1.5: must be an integer"),
        (("--events", "segments", "--event", "starts=maybe"), "starts=maybe: must be yes or no"),
        (("--events", "ctc"), "ctc: needs tokens; give --event tokens=VALUE"),
        (
            ("--events", "ctc", "--event", "tokens=none.txt"),
            "none.txt: cannot be read as tokens (No such file or directory); give a text file with a token",
        ),
        (
            ("--events", "segments", "--event", "off_threshold=2"),
            "off_threshold=2: must not be above threshold=0.5",
        ),
        (
            ("--events", "segments", "--event", "column=0", "--event", "column=1"),
            "--event column=1: column is given twice",
        ),
        (
            ("--events", "segments", "--subtype", "float"),
            "--subtype is for audio; omit it with --events",
        ),
        (
            ("--events", "segments", "--format", "srt"),
            "out.csv: events are written by suffix; call the file out.srt",
        ),
    ],
)
def test_bad_options_are_refused_in_one_line(tmp_path: Path, options: tuple[Any, ...], message: str) -> None:
    """The refusal is one line, and nothing is written."""
    assert f"error: {message}" in refusal(
        "run", voice("m.onnx"), bursts(), "out.csv", *options, "--backend", "numpy"
    )
    assert not (tmp_path / "out.csv").exists()


def test_the_built_in_model_has_no_probabilities() -> None:
    message = refusal("run", bursts(), "out.csv", "--events", "segments", "--backend", "numpy")
    assert "--events: the built-in denoiser has no probabilities; give a model" in message
    assert message == refusal("run", "--live", "--events", "segments", "--backend", "numpy")


def test_outputs_without_times_are_refused() -> None:
    np.save("x.npy", np.zeros((1, 9, 4), np.float32))
    model = features("m.onnx")
    message = refusal("run", model, "x.npy", "out.csv", "--events", "argmax", "--backend", "numpy")
    assert "y: events have times; give the model's samples or frames per second with --rate 16000" in message
    message = refusal(
        "run", voice("v.onnx"), bursts(), "out.npy", "--events", "segments", "--backend", "numpy"
    )
    assert "out.npy: events are written as .csv, .txt, .rttm, .srt, .vtt, .jsonl, not .npy" in message


def test_event_files_without_a_detector_are_refused() -> None:
    message = refusal("run", voice("v.onnx"), bursts(), "out.srt", "--backend", "numpy")
    assert "frames as .npy, .csv, not .srt; for events, add --events segments" in message
