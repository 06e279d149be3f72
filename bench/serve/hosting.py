"""The server of a run, in a separate process."""

import os
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

import anyio

from bench.serve.onnxruntime_lanes import OnnxRuntimeProgram
from pulse.api import load
from pulse.support.cores import core_count
from streaming.builtin import model_path
from streaming.opening.opened_model import OpenedModel
from streaming.serve.running import loop_options
from streaming.serve.server import Server, listen
from streaming.serve.service import Service
from streaming.serve.settings import LimitSettings, ModelSettings, ServerSettings

RATE_HZ = 16000
"""The sample rate of the models."""


def serve(
    name: str, source: str | None, engine: str, streams: int, core: int | None, pipe: Connection
) -> None:
    """Serve a model on one core or all: send the address, then figures on request, until it receives ``end``."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    opened = OpenedModel(load(source or model_path()), RATE_HZ, "option")
    pulsed = opened.pulsify()
    program: Any = pulsed.compile()
    if engine == "onnxruntime":
        program = OnnxRuntimeProgram(pulsed, program)
    model = ModelSettings(None, name, streams=streams)
    limits = LimitSettings(streams_per_address=10_000)
    settings = ServerSettings((model,), limits=limits, budget=1000.0)
    service = Service(settings, [(model, program, RATE_HZ)], core_count())
    listening = listen("127.0.0.1", 0, limits.slow_s)
    server = Server(service, listening)
    pipe.send(listening.getsockname()[:2])

    def answer() -> None:
        while pipe.recv() != "end":
            pipe.send({"cpu_s": time.process_time(), "times": service.times(name).as_dict()})
        server.should_exit = True

    threading.Thread(target=answer, daemon=True).start()
    anyio.run(server.serve_streams, backend_options=loop_options())
