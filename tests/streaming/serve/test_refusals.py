"""Invalid messages of clients end their stream with a code and a status, and change no other stream."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus

from streaming.protocol.binary_messages import HEADER
from streaming.protocol.errors import STATUSES, ProtocolError
from streaming.serve.lanes.group import StepCost
from streaming.serve.rate_limiter import RateLimiter
from streaming.serve.settings import LimitSettings, ModelSettings, ServerSettings
from streaming.session import Session
from tests.held_clock import HeldClock
from tests.noise import next_noise
from tests.streaming.executor.streams import named_program
from tests.streaming.serve.servers import PULSE, RATE_HZ, RunningServer, running_server
from tests.streaming.serve.websocket_client import raw, samples_of
from tests.waiting import wait_until

HELLOS = {
    "not a hello": ({"type": "flush"}, "hello"),
    "no type": ({"model": "short"}, "message"),
    "a list": ("[1]", "message"),
    "not JSON": ("{", "message"),
    "infinity": ('{"type": "hello", "rate": Infinity}', "message"),
    "deep": ("[" * 3000, "message"),
    "binary": (b"\0" * 24, "hello"),
    "another version": ({"type": "hello", "version": 2}, "hello"),
    "no such model": ({"type": "hello", "model": "../etc/passwd"}, "model"),
    "a model that is not text": ({"type": "hello", "model": ["short"]}, "hello"),
    "another rate": ({"type": "hello", "model": "filtered", "rate": 44100}, "rate"),
    "no such format": ({"type": "hello", "format": "mp3"}, "hello"),
    "no such output": ({"type": "hello", "model": "filtered", "outputs": ["z"]}, "hello"),
    "a negative block": ({"type": "hello", "block": -1}, "hello"),
}


@pytest.mark.parametrize("case", HELLOS)
def test_a_wrong_hello_is_refused_with_its_code(server: RunningServer, case: str) -> None:
    message, code = HELLOS[case]
    with raw(server) as client:
        client.send(message)
        error = client.receive()
        assert error["type"] == "error", error
        assert error["code"] == code, error
        assert error["message"]
        assert client.closing_status() == STATUSES[code]


def send_text(message: dict[str, Any] | str) -> Callable:
    return lambda client: client.send(message)


MESSAGES = {
    "shorter than a header": (send_text(b"\1\0"), "message"),
    "an output": (lambda client: client.send_frames([0.0], 0, kind=2), "message"),
    "no such port": (lambda client: client.send_frames([0.0], 0, port=7), "message"),
    "more bytes than frames": (send_text(HEADER.pack(1, 0, 0, 1, 0, 0, 0) + bytes(8)), "message"),
    "many frames and no bytes": (send_text(HEADER.pack(1, 0, 0, 2**32 - 1, 0, 0, 0)), "message"),
    "a gap": (lambda client: client.send_frames([0.0], 5), "gap"),
    "far away": (lambda client: client.send_frames([0.0], 2**64 - 1), "gap"),
    "NaN": (lambda client: client.send_frames([0.0, np.nan], 0), "input"),
    "no such request": (send_text({"type": "begin"}), "message"),
    "a long text": (send_text({"type": "ping", "x": "x" * 5000}), "size"),
    "text that is not JSON": (send_text("hello"), "message"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_bad_messages_end_the_stream_with_a_code(server: RunningServer, case: str) -> None:
    send, code = MESSAGES[case]
    with raw(server) as client:
        assert client.hello(model="filtered")["type"] == "ready"
        send(client)
        error = client.receive_until("error")[-1]
        assert error["code"] == code, error
        assert "check_finite" not in error["message"]  # which no client can give
        assert client.closing_status() == STATUSES[code]


def test_after_the_flush_only_a_reset_is_accepted(server: RunningServer) -> None:
    with raw(server) as client:
        client.hello(model="ending")
        client.send_frames(np.ones(5), 0)
        client.send({"type": "flush"})
        flushed = client.receive_until("flushed")[-1]
        assert (flushed["received"], flushed["sent"]) == ([5], [5])
        client.send({"type": "reset"})
        assert client.receive_until("reset")[-1]["epoch"] == 1
        client.send_frames(np.ones(4), 0, epoch=0)  # of the epoch before: dropped
        client.send_frames(np.ones(4), 0, epoch=1)
        client.send({"type": "flush"})
        assert client.receive_until("flushed")[-1]["received"] == [4]
        client.send_frames(np.ones(4), 4, epoch=1)
        assert client.receive_until("error")[-1]["code"] == "ended"


def test_a_stream_that_may_not_end_there_is_refused(server: RunningServer) -> None:
    with raw(server) as client:
        client.hello(model="ending")  # needs three frames
        client.send_frames(np.ones(1), 0)
        client.send({"type": "flush"})
        assert client.receive_until("error")[-1]["code"] == "input"


def test_repeated_frames_count_once(server: RunningServer) -> None:
    x = np.arange(20, dtype=np.float32)
    with raw(server) as client:
        client.hello(model="ending")
        client.send_frames(x[:8], 0)
        client.send_frames(x[4:12], 4)
        client.send_frames(x[:3], 0)
        client.send_frames(x[12:], 12)
        client.send({"type": "flush"})
        messages = client.receive_until("flushed")
        outputs = np.concatenate([samples_of(m) for m in messages if isinstance(m, bytes) and m[0] == 2])
        np.testing.assert_array_equal(outputs, x + 1)


def test_one_input_far_ahead_of_the_other_is_refused(server: RunningServer) -> None:
    with raw(server) as client:
        window = client.hello(model="two_rates")["limits"]["window"]
        client.send_frames(np.zeros(4 * window + 4 * 2 * PULSE), 0)
        error = client.receive_until("error")[-1]
        assert error["code"] == "input"
        assert "in turn" in error["hint"]


def test_pings_and_statistics_are_answered(server: RunningServer) -> None:
    with raw(server) as client:
        client.hello(model="filtered")
        client.send({"type": "ping", "mine": 7})
        pong = client.receive_until("pong")[-1]
        assert pong["mine"] == 7
        assert pong["server_ns"] > 0
        client.send_frames(np.zeros(4 * PULSE), 0)
        assert isinstance(client.receive(), bytes)
        client.send({"type": "stats"})
        assert client.receive_until("stats")[-1]["step_us"]["count"] >= 1


def limited_server(pulse: int = PULSE, drain_s: float = 0.0, **limits: float) -> AbstractContextManager[Any]:
    """A server with one model of two streams."""
    model = ModelSettings(name="filtered", streams=2)
    settings = ServerSettings((model,), limits=replace(LimitSettings(speed=1e6), **limits), drain_s=drain_s)
    return running_server([(model, named_program("filtered", pulse), RATE_HZ)], settings, threads=1)


def test_streams_beyond_the_limit_of_the_model_are_refused() -> None:
    with limited_server() as server, raw(server) as first, raw(server) as second:
        assert first.hello()["type"] == second.hello()["type"] == "ready"
        with raw(server) as third:
            assert third.hello()["code"] == "busy"
            assert third.closing_status() == 1013
        second.socket.close()
        with raw(server) as fourth:
            assert fourth.hello()["type"] == "ready"


def test_streams_beyond_the_limit_of_an_address_are_refused() -> None:
    with limited_server(streams_per_address=1) as server, raw(server) as first:
        first.hello()
        with raw(server) as second:
            assert second.receive()["code"] == "address"


def test_a_client_without_a_hello_is_ended() -> None:
    with limited_server(hello_s=0.3) as server, raw(server) as silent:
        assert silent.receive()["code"] == "hello"


def test_an_idle_client_is_ended() -> None:
    with limited_server(idle_s=1.2) as server, raw(server) as idle:
        idle.hello()
        assert idle.receive_until("error")[-1]["code"] == "idle"
        assert idle.closing_status() == STATUSES["idle"]


def test_a_client_that_does_not_read_holds_back_only_itself() -> None:
    with limited_server(3000, slow_s=1.0, idle_s=20, window_s=1e4) as server, raw(server) as good:
        good.hello()
        with raw(server, max_queue=1) as slow:
            slow.hello()
            block, first = np.zeros(30_000, np.float32), 0
            with pytest.raises((ConnectionClosed, TimeoutError)):
                slow.socket.socket.settimeout(3)
                while True:
                    slow.send_frames(block, first)
                    first += block.size
            good.send_frames(np.ones(4000), 0)
            good.send({"type": "flush"})
            assert good.receive_until("flushed")[-1]["received"] == [4000]
        assert first < 100_000_000
        assert server.service.counts.ended["slow"] == 1


def test_messages_are_limited_in_each_second() -> None:
    clock = HeldClock()
    limiter = RateLimiter(LimitSettings(messages_per_s=3), None, clock)
    for now_s in (5.0, 5.1, 5.999, 6.0, 6.5, 6.9, 9.0, 9.2, 9.3):
        clock.now_s = now_s
        limiter.count_message(10, True)
    clock.now_s = 9.99
    with pytest.raises(ProtocolError, match="more than 3 messages in a second"):
        limiter.count_message(10, True)


def test_frames_are_held_back_as_long_as_they_last() -> None:
    """Up to the window at once; then a client waits until as much time has passed as its frames last."""
    clock = HeldClock(10.0)
    limiter = RateLimiter(LimitSettings(speed=2.0, window_s=0.25), 100.0, clock)
    for frames, hold_s in ((50, 0.0), (25, 0.125), (25, 0.25)):
        limiter.count_frames(frames)
        assert limiter.hold_s() == pytest.approx(hold_s)
    clock.now_s = 10.25
    assert limiter.hold_s() == pytest.approx(0.0)
    clock.now_s = 100.0
    limiter.count_frames(100)
    assert limiter.hold_s() == pytest.approx(0.25), "time without frames saves no more than the window"
    unlimited = RateLimiter(LimitSettings(speed=2.0), None, clock)
    unlimited.count_frames(1e9)
    assert unlimited.hold_s() == 0.0


def test_a_flood_of_messages_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "streaming.serve.connection.RateLimiter", partial(RateLimiter, monotonic=HeldClock(10.0))
    )
    with limited_server(messages_per_s=1) as server, raw(server) as client:
        client.hello()
        with suppress(ConnectionClosed):  # the server may close before the second one is sent
            for _ in range(2):
                client.send({"type": "ping"})
        assert client.closing_status() == 1008
        assert server.service.counts.ended["pace"] == 1


def test_too_fast_frames_are_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the clock of the server has advanced by the time that they last, the window aside."""
    clock = HeldClock(10.0)
    monkeypatch.setattr("streaming.serve.connection.RateLimiter", partial(RateLimiter, monotonic=clock))
    with limited_server(speed=1.0, window_s=0.2) as server, raw(server) as client:
        client.hello()
        client.send_frames(np.zeros(22), 0)  # 0.22 s of sound
        wait_until(lambda: server.service.counts.held_back, "frames are held back")
        client.send_frames(np.zeros(1), 22)
        client.send({"type": "flush"})
        clock.now_s = 10.015
        readings = clock.readings
        wait_until(lambda: clock.was_read_since(readings), "the server has found twice that it is too early")
        (connection,) = server.service.connections
        assert connection.stream.received == [22]
        clock.now_s = 10.1
        assert client.receive_until("flushed")[-1]["received"] == [23]
        assert server.service.counts.held_back == 1


def test_a_stream_has_one_timer_of_its_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if an answer ends the hold while its timer waits for a busy event loop."""
    clock, timers = HeldClock(10.0), []

    class BusyLoop:
        def call_later(self, delay_s, callback):
            clock.now_s += delay_s + 0.001
            timers.append(callback)
            return callback

    monkeypatch.setattr("streaming.serve.connection.RateLimiter", partial(RateLimiter, monotonic=clock))
    monkeypatch.setattr("streaming.serve.connection.asyncio", SimpleNamespace(get_running_loop=BusyLoop))
    with limited_server(speed=1.0, window_s=0.2) as server, raw(server) as client:
        client.hello()
        client.send_frames(np.zeros(30), 0)
        client.send_frames(np.zeros(30), 30)
        wait_until(lambda: server.service.counts.held_back == 2, "the second block is held back")
        assert len(timers) == 1


def test_a_token_is_required() -> None:
    model = ModelSettings(name="filtered", streams=2)
    settings = ServerSettings((model,), tokens=("right",))
    with running_server([(model, named_program("filtered", PULSE), RATE_HZ)], settings, threads=1) as server:
        import httpx

        with raw(server) as client:
            assert client.hello(token="wrong")["code"] == "token"
        with raw(server) as client:
            assert client.hello(token="right")["type"] == "ready"
        with raw(server, additional_headers={"Authorization": "Bearer right"}) as client:
            assert client.hello()["type"] == "ready"
        assert httpx.get(f"{server.url}/v1/models").status_code == 401
        assert httpx.get(f"{server.url}/metrics").status_code == 401
        assert httpx.get(f"{server.url}/health").status_code == 200


def test_origins_are_checked(server: RunningServer) -> None:
    with pytest.raises(InvalidStatus, match="403"), raw(server, origin="https://elsewhere.example"):
        pass
    with raw(server, origin=server.url) as client:
        assert client.hello()["type"] == "ready"


def test_a_server_that_drains_refuses_new_streams() -> None:
    import httpx

    with limited_server(drain_s=20) as server, raw(server) as client:
        client.hello()
        server.server.should_exit = True
        wait_until(lambda: server.service.admission.draining, "the server drains")
        assert httpx.get(f"{server.url}/health").status_code == 503
        with raw(server) as late:
            assert late.receive()["code"] == "drain"
            assert late.closing_status() == 1013
        client.send({"type": "ping"})
        assert client.receive_until("pong"), "streams that are open continue"


def test_a_server_that_has_drained_informs_its_streams() -> None:
    with limited_server() as server, raw(server) as client:
        client.hello()
        server.server.should_exit = True
        assert client.receive_until("error")[-1]["code"] == "drain"
        assert client.closing_status() == 1013


def junk(rng: np.random.Generator) -> bytes | str:
    """An invalid message: random bytes, headers with random fields, or JSON of any form."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.bytes(int(rng.integers(0, 200)))
    if kind == 1:
        fields = [int(rng.integers(0, high)) for high in (4, 3, 3, 64, 64, 9, 9)]
        return HEADER.pack(*fields) + rng.bytes(int(rng.integers(0, 256)))
    if kind == 2:
        frames = int(rng.integers(0, 40))
        values = rng.choice([0.0, 1e38, np.inf, -1.0, np.nan], frames, p=[0.5, 0.2, 0.1, 0.15, 0.05])
        return HEADER.pack(1, 0, 0, frames, 0, 0, 0) + values.astype("<f4").tobytes()
    words = ["type", "flush", "reset", "ping", "stats", "hello", "epoch", 1, None, [], {}, -(2**70), 1e308]
    return json.dumps(
        {"type": words[rng.integers(len(words))], str(words[rng.integers(6)]): words[rng.integers(7)]}
    )


def send_junk(server: RunningServer, messages: int, seed: int) -> int:
    """Send junk over as many connections as it takes, during a stream that must stay exact; return their number."""
    rng, connections, sent = np.random.default_rng(seed), 0, 0
    program = named_program("filtered", PULSE)
    x = next_noise(rng, PULSE * 40)
    session = Session(program)
    shape = [-1 if axis == port.axis else 1 for port in program.inputs for axis in range(len(port.shape))]
    expected = [session.push(x.reshape(shape))["y"], session.flush()["y"]]
    with raw(server) as good:
        good.hello(model="filtered", outputs=["y"])
        fed, came = 0, []
        while sent < messages:
            good.send({"type": "ping"})  # it is not idle, however long this takes
            came += good.receive_until("pong")
            connections += 1
            with raw(server) as bad:
                if rng.random() < 0.9:
                    bad.hello(model=str(rng.choice(["filtered", "ending", "two_rates", "short"])))
                with suppress(TimeoutError, ConnectionClosed):  # nothing to read, or refused
                    while sent < messages:
                        sent += 1
                        bad.send(junk(rng))
                        if rng.random() < 0.2:
                            bad.socket.recv(0)
                end = x.size * sent // messages  # the stream lasts as long as the junk
                if end > fed:
                    good.send_frames(x[fed:end], fed)
                fed = end
        assert fed == x.size
        assert any(isinstance(message, bytes) for message in came)
        good.send({"type": "flush"})
        came += good.receive_until("flushed", 30)
        arrays = [samples_of(m) for m in came if isinstance(m, bytes) and m[0] == 2]
    joined = np.concatenate([array.reshape(-1) for array in arrays])
    np.testing.assert_allclose(
        joined, np.concatenate([e.reshape(-1) for e in expected]), rtol=1e-5, atol=1e-6
    )
    return connections


def test_junk_changes_no_other_stream(server: RunningServer) -> None:
    assert send_junk(server, 400, 0) > 20
    assert "failed" not in server.service.counts.ended


@pytest.mark.slow
def test_ten_thousand_junk_messages_change_no_other_stream(server: Any) -> None:
    assert send_junk(server, 10_000, 1) > 500
    assert "failed" not in server.service.counts.ended


@given(st.binary(max_size=64))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_frame_or_a_protocol_error(data: bytes) -> None:
    from streaming.protocol.binary_messages import unpack_header

    try:
        header = unpack_header(data)
    except ProtocolError as error:
        assert len(data) < HEADER.size
        assert error.code == "message"
    else:
        assert HEADER.pack(*header) == data[: HEADER.size]


def test_only_the_first_stream_may_exceed_the_budget() -> None:
    model = ModelSettings(name="filtered", streams=4)
    settings = ServerSettings((model,), limits=LimitSettings(speed=1e6), budget=1e-9)
    with (
        running_server([(model, named_program("filtered", PULSE), RATE_HZ)], settings, threads=1) as server,
        raw(server) as first,
    ):
        assert first.hello()["type"] == "ready"
        with raw(server) as second:
            refused = second.hello()
            assert refused["code"] == "busy"
            assert "more" in refused["message"]
            assert second.closing_status() == 1013


def set_costs(server: RunningServer, times_ns: list[int]) -> None:
    """Set the times of the steps of the first model."""
    for _, group in server.service.models[0].groups:
        group.cost = StepCost(times_ns)


def test_models_slower_than_real_time_are_refused() -> None:
    with limited_server() as server, raw(server) as client:
        set_costs(server, [int(2e9 * PULSE / RATE_HZ)] * 9)
        assert "times as long as its audio" in client.hello()["message"]


def test_rare_long_steps_do_not_refuse_the_first_stream() -> None:
    with limited_server() as server, raw(server) as client:
        set_costs(server, [1000] * 99 + [int(5e9)] * 3)
        assert client.hello()["type"] == "ready"
