"""The server of a run, in a process of its own."""

import os
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

import anyio

from bench.serve.onnxruntime_lanes import OnnxRuntimeProgram
from pulse.api import load
from streaming.builtin import model_path
from streaming.reports.opened_model import OpenedModel
from streaming.serve.server import Server, listen
from streaming.serve.service import Service
from streaming.serve.settings import LimitSettings, ModelSettings, ServerSettings

RATE_HZ = 16000


def serve(name: str, source: str | None, behind: str, streams: int, pipe: Connection) -> None:
    """Serve a model; the address, then the figures when they are asked for, then the end."""
    opened = OpenedModel(load(source or model_path()), RATE_HZ, "option")
    pulsed = opened.pulsify(None)
    program: Any = pulsed.compile()
    if behind == "onnxruntime":
        program = OnnxRuntimeProgram(pulsed, program)
    model = ModelSettings(None, name, streams=streams)
    limits = LimitSettings(streams_per_address=10_000)
    settings = ServerSettings((model,), limits=limits, budget=1000.0)
    service = Service(settings, [(model, program, RATE_HZ)], os.cpu_count() or 1)
    listening = listen("127.0.0.1", 0, limits.slow_s)
    server = Server(service, listening)
    pipe.send(listening.getsockname()[:2])
    before = time.process_time()

    def answer() -> None:
        pipe.recv()
        pipe.send({"cpu_s": time.process_time() - before, "times": service.times(name).as_dict()})
        pipe.recv()
        server.should_exit = True

    threading.Thread(target=answer, daemon=True).start()
    anyio.run(server.serve_streams, backend_options={"use_uvloop": True})
