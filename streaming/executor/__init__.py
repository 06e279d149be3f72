"""The executor: streams of one program in an event loop, asyncio or trio.

async with Executor(program, policy="drop_oldest") as executor:
    async for outputs in executor.stream(source):
        ...
    await executor.run("noisy.wav", "quiet.wav")
print(executor.statistics())
"""

from streaming.errors import ExecutorError
from streaming.executor.executor import Executor
from streaming.executor.executor_statistics import ExecutorStatistics
from streaming.executor.microphone import Microphone
from streaming.executor.sinks import AudioFileSink, FramesFileSink, PcmSink, Sink
from streaming.executor.sources import AsyncAudioSource, AudioFile, PcmSource
from streaming.executor.stream import Stream

__all__ = [
    "AsyncAudioSource",
    "AudioFile",
    "AudioFileSink",
    "Executor",
    "ExecutorError",
    "ExecutorStatistics",
    "FramesFileSink",
    "Microphone",
    "PcmSink",
    "PcmSource",
    "Sink",
    "Stream",
]
