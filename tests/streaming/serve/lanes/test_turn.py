"""Turns of a group of lanes: pulses that wait are answered together, and a fault ends its stream alone."""

import functools
import time

import numpy as np
import pytest

from pulse.facts import Array
from pulse.program.program import Program
from streaming.serve.lanes.lane_stream import Answer
from tests.noise import normal_noise

pytest.importorskip("uvicorn", reason="needs the extra serve")

from streaming.protocol.binary_messages import HEADER, unpack_header
from streaming.protocol.messages import Hello
from streaming.serve.hosted_model import HostedModel
from streaming.serve.lanes.lane_stream import Block
from streaming.serve.lanes.lane_worker import LaneWorker
from streaming.serve.lanes.loop_pacing import LoopPacing
from streaming.serve.settings import ModelSettings
from streaming.session import Session
from tests.streaming.executor.lookup_model import PULSE as FAULTY_PULSE
from tests.streaming.executor.lookup_model import ROWS, lookup
from tests.streaming.executor.streams import named_program
from tests.streaming.serve.offline_outputs import block_shape
from tests.streaming.serve.servers import PULSE, RATE_HZ

LANES = 4


class Group:
    """The streams of one group, without a thread: turns are taken by hand."""

    def __init__(self, program: Program, rate_hz: int = RATE_HZ) -> None:
        worker = LaneWorker(0, LoopPacing())
        self.model = HostedModel(ModelSettings(name="model", streams=LANES), program, rate_hz, [worker])
        self.group = self.model.groups[0][1]
        hello = Hello.of_message({"type": "hello"})
        self.streams = [
            self.model.open_stream(worker, hello, self.model.conversion(hello), lambda answer: None)
            for _ in range(LANES)
        ]

    def feed(self, number: int, name: str, frames: Array) -> None:
        """Push a block into a stream."""
        stream = self.streams[number]
        block = Block(0, name, frames, frames.size, time.monotonic_ns())
        stream.inbox.append(block)
        assert stream.prepare() is None
        if stream.waiting_pulses:
            self.group.ready[stream] = None

    def turn(self) -> dict[int, list[Answer]]:
        """The answers of a turn, for each stream that has any."""
        answers = {}
        for stream, answer in self.group.step():
            answers.setdefault(self.streams.index(stream), []).append(answer)
        return answers


@functools.cache
def filter_program() -> Program:
    return named_program("filtered", PULSE)


def shape_of_port(x: Array) -> Array:
    (port,) = (port for port in filter_program().inputs if port.streams)
    return x.reshape(block_shape(port, -1))


def values(answers: list[Answer], port: int = 0) -> Array:
    """The values of all messages of one output."""
    messages = [
        message for answer in answers for message in answer.messages if unpack_header(message).port == port
    ]
    return np.concatenate([np.frombuffer(message[HEADER.size :], np.float32) for message in messages])


def test_streams_of_different_lengths_share_a_turn() -> None:
    group = Group(filter_program())
    (name,) = (port.name for port in filter_program().inputs if port.streams)
    x = normal_noise(LANES, 9 * PULSE)
    expected = [Session(filter_program()).push(shape_of_port(row)) for row in x]
    answers = {number: [] for number in range(LANES)}
    first = {number: (number % 3 + 1) * PULSE for number in range(LANES)}
    for parts in (lambda n: slice(0, first[n]), lambda n: slice(first[n], None)):
        for number in range(LANES):
            group.feed(number, name, shape_of_port(x[number, parts(number)]))
        while group.group.ready:
            for number, answers_of_stream in group.turn().items():
                (answer,) = answers_of_stream
                answers[number].append(answer)
                stream = group.streams[number]
                if stream.waiting_pulses:
                    group.group.ready[stream] = None
    for number, stream in enumerate(group.streams):
        port = group.model.outputs[0]
        np.testing.assert_allclose(
            values(answers[number]), expected[number][port.name].ravel(), rtol=1e-5, atol=1e-6
        )
        assert stream.times.compute.count == 9
        assert answers[number][-1].pulses == 9


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_a_fault_keeps_earlier_pulses_and_other_streams(wrong: int) -> None:
    group = Group(lookup("numba"), 100 * FAULTY_PULSE)
    well = np.arange(3 * FAULTY_PULSE) % ROWS
    bad = well.copy()
    bad[wrong * FAULTY_PULSE + 1] = ROWS
    for number in range(LANES):
        group.feed(number, "i", bad if number == 1 else well)
    answers = group.turn()
    good = [group.streams[number] for number in range(LANES) if number != 1]
    assert not any(stream.waiting_pulses for stream in good)
    for number in (0, 2, 3):
        np.testing.assert_array_equal(_rows(answers[number]), well)
    *before, failed = answers[1]
    assert failed.error.code == "fault"
    assert len(before) == (wrong > 0)
    if before:
        np.testing.assert_array_equal(_rows(before), bad[: wrong * FAULTY_PULSE])
    assert not group.streams[1].waiting_pulses


def _rows(answers: list[Answer]) -> Array:
    data = [message[HEADER.size :] for answer in answers for message in answer.messages]
    return np.frombuffer(b"".join(data), np.float32)
