"""Executor: streams of one program in an event loop, its pulses in their own thread."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any

import anyio
from anyio.abc import TaskGroup

from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.program import Program, require_program
from pulse.support.not_copyable import NotCopyable
from streaming.blocks.input_blocks import InputBlock
from streaming.errors import ExecutorError, unwrap_single_error
from streaming.executor.engine import Engine
from streaming.executor.executor_statistics import ExecutorStatistics, StreamCounters, total_statistics
from streaming.executor.flow import CLOSED_MESSAGE, Flow, merge_errors
from streaming.executor.sinks import make_sink
from streaming.executor.sources import AsyncAudioSource, make_blocks, make_source
from streaming.executor.stream import Stream
from streaming.executor.stream_steps import StreamSteps
from streaming.executor.thread_engine import ThreadEngine
from streaming.latency import LatencyHistogram
from streaming.policies import Policy
from streaming.realtime import Realtime, RealtimeSetting, apply_to_process


class Executor(NotCopyable, reason="it has a thread; make another one with a copy of its program"):
    """Runs any number of streams of a program at once, on asyncio or trio.

    program       a program, from ``pulse.stream(…)`` or ``PulsedModel.compile()``
    policy        what to do when a source is faster than the engine: ``wait``, ``drop_oldest``,
                  ``silence_then_catch_up`` or ``abort``; see ``streaming.policies``
    depth         pulses of each stream that may be in flight, including outputs that have not been taken
    constants     the inputs that do not stream, by name, for all streams
    realtime      the real-time settings that the engine's thread requests; None for none
    rate_hz       frames of the symbol per second; required for audio
    deadline_s    the time from the arrival of a pulse's last sample after which its output is late; by default, a
                  pulse's duration if the rate is known
    check_finite  refuse NaN in blocks; infinities are accepted
    specialise    compile specialised kernels while the streams run, see ``streaming.compilation.specialisation``
    engine        the engine that runs pulses; by default one for the program's backend
    Raises        InputError: no such policy, constants that are missing or do not fit, no positive depth, rate or
                  deadline, or no deadline for a policy that needs one

    An executor has one engine with one thread, in which streams take turns, a pulse each. Leaving the ``async with``
    ends the thread; streams that still run fail, and frames that they had accepted count as discarded. An error of a
    source is raised when its outputs are taken or, if they are no longer taken, at the end of the ``async with``.

        async with Executor(program) as executor:
            async for outputs in executor.stream(source):
                ...
    """

    def __init__(
        self,
        program: Program,
        policy: str = "wait",
        depth: int = 8,
        constants: Mapping[str, Array] | None = None,
        realtime: Realtime | None = None,
        *,
        rate_hz: int | None = None,
        deadline_s: float | None = None,
        check_finite: bool = True,
        specialise: bool = False,
        engine: Engine | None = None,
    ) -> None:
        self.program = require_program(program)
        self.policy = Policy.of_name(policy)
        if depth < 1:
            raise InputError(f"depth {depth}: give 1 or more")
        if rate_hz is not None and rate_hz < 1:
            raise InputError(f"sample rates must be positive, got {rate_hz} Hz")
        if deadline_s is None and rate_hz is not None:
            deadline_s = program.pulse / rate_hz
        if deadline_s is None and self.policy.needs_deadline:
            raise InputError(f"policy {policy}: give deadline_s, or rate_hz for that of one pulse")
        if deadline_s is not None and not deadline_s > 0:
            raise InputError(f"deadline_s {deadline_s:g}: must be positive")
        self.depth = depth
        self.rate_hz = rate_hz
        self.deadline_s = deadline_s
        self._constants = program.spawn(constants).constants
        self._check_finite = check_finite
        self._realtime = realtime
        self._engine = engine
        self._specialisation = None
        if specialise:
            from streaming.compilation.specialisation import BackgroundSpecialisation

            self._specialisation = BackgroundSpecialisation(program)
        self._flows: list[Flow] = []
        self._past = StreamCounters(total=LatencyHistogram(deadline_s))
        self._errors: list[BaseException] = []
        self._realtime_settings: list[RealtimeSetting] = []
        self._tasks: TaskGroup | None = None
        self._exit_stack = AsyncExitStack()
        self._ended = False

    def statistics(self) -> ExecutorStatistics:
        """Return counts of frames and durations of pulses, of all streams, including those that have ended."""
        running = [flow.update_counters() for flow in self._flows if not flow.closed]
        notes = [str(setting) for setting in self.realtime_settings if not setting.is_granted]
        if self._specialisation is not None:
            notes.append(str(self._specialisation))
        return total_statistics([self._past, *running], len(running), self.deadline_s, notes)

    @property
    def realtime_settings(self) -> list[RealtimeSetting]:
        """The settings requested for the process and the engine, each with what the system granted."""
        return [
            *self._realtime_settings,
            *(self._engine.realtime_settings if self._engine is not None else []),
        ]

    def stream(self, source: Any, channel: str = "mix") -> Stream:
        """Create a stream.

        source   an iterable or async iterable of blocks (arrays, or input name -> array), such as a memory stream;
                 one array; an ``AsyncAudioSource``, or the path of an audio file. It is closed with the stream. A block
                 may be modified as soon as the next one is requested.
        channel  channel of audio: ``mix`` for the mean of all, or the number of one
        Raises   InputError: no source, or audio that the model does not take
        """
        return Stream(partial(self._begin, make_blocks(source, self.program, self.rate_hz, channel)))

    async def run(self, source: Any, sink: Any, channel: str = "mix") -> None:
        """Send all outputs of a source to a sink, at the pace of the sink.

        source, channel  see ``stream``
        sink             a function or coroutine function that takes outputs, a memory stream, the path of a file, or
                         a ``Sink``
        Raises           any error of the source or sink; InputError: they do not fit the model; ExecutorError: the
                         executor is not open, or was late
        """
        source = make_source(source)
        audio = source if isinstance(source, AsyncAudioSource) else None
        async with (
            self.stream(source, channel) as stream,
            make_sink(sink).open(self.program, self.rate_hz, audio) as write,
        ):
            async for outputs in stream:
                await write(outputs)

    async def __aenter__(self) -> "Executor":
        if self._tasks is not None:
            raise ExecutorError("an executor is entered once; make another one")
        async with AsyncExitStack() as exit_stack:
            engine = self._engine or engine_for(self.program, self._realtime)
            engine.start()
            exit_stack.push_async_callback(engine.stop)
            if self._specialisation is not None:
                exit_stack.enter_context(self._specialisation)
            if self._realtime is not None:
                self._realtime_settings = exit_stack.enter_context(apply_to_process(self._realtime))
            self._tasks = await exit_stack.enter_async_context(anyio.create_task_group())
            self._engine, self._exit_stack = engine, exit_stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._ended = True
        flows = list(self._flows)
        for flow in flows:
            flow.close(CLOSED_MESSAGE)
        for flow in flows:
            await flow.wait_until_finished()
        leaving, failed = error, isinstance(error, Exception)
        try:
            # No task is left, so the group need not see an error of the body, which it would wrap.
            await self._exit_stack.__aexit__(*((None, None, None) if failed else (kind, error, trace)))
        except BaseException as other:
            single = unwrap_single_error(other)
            if isinstance(single, Exception) or not failed:
                leaving = single
        self._reap()
        leaving = merge_errors(leaving, self._errors)
        if leaving is not None and leaving is not error:
            raise leaving
        return False

    def _begin(self, blocks: AsyncGenerator[InputBlock]) -> Flow:
        """Start to run a stream's pulses. Raises ExecutorError: the executor is not open."""
        if self._tasks is None or self._engine is None or self._ended:
            raise ExecutorError(
                CLOSED_MESSAGE
                if self._ended
                else "the executor is not open: async with Executor(…) as executor"
            )
        self._reap()
        state = self.program.spawn(self._constants)
        queue = self._engine.open(state, self.depth)
        steps = StreamSteps(state, queue, self.policy, self.deadline_s, self._check_finite)
        flow = Flow(blocks, steps, queue, self.policy, self._close)
        self._flows.append(flow)
        self._tasks.start_soon(flow.feed)
        return flow

    def _reap(self) -> None:
        """Drop flows that have ended, but keep the errors of their sources."""
        for flow in [flow for flow in self._flows if flow.is_finished]:
            self._errors += flow.take_errors()
            self._flows.remove(flow)

    def _close(self, flow: Flow) -> None:
        self._past.add(flow.update_counters())


def engine_for(program: Program, realtime: Realtime | None) -> Engine:
    """Create the engine for a program's backend."""
    if program.backend == "numba":
        from streaming.executor.native_engine import NativeEngine

        return NativeEngine(realtime)
    return ThreadEngine(realtime)
