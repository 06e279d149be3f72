"""Models in separate processes, some at once."""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

from bench.torch_codes.measurement import measure
from bench.torch_codes.models import (
    attention,
    codecs,
    enhancers,
    features,
    recognisers,
    recurrences,
    transforms,
)
from bench.torch_codes.outcome import ModelOutcome
from bench.torch_codes.published_model import PUBLISHED_MODELS, PublishedModel

GROUPS = (codecs, enhancers, recognisers, features, transforms, attention, recurrences)
"""The modules that add to ``PUBLISHED_MODELS``."""
MODEL_TIMEOUT_S = 600
"""A model that is not done after this many seconds is reported as such."""


def run_all(names: Sequence[str], jobs: int) -> Iterator[ModelOutcome]:
    """Yield the outcomes of models, ``jobs`` at once, each in a separate process, as they end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bench.torch_codes.preload"])
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(run, context, PUBLISHED_MODELS[name]) for name in names]):
            yield future.result()


def run(context: ForkServerContext, model: PublishedModel) -> ModelOutcome:
    """Run a model in a process of ``context``; return its outcome, with a reason if the process ends without one."""
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_outcome, args=(model.name, sender))
    process.start()
    sender.close()
    unknown = dict.fromkeys(model.packages, "")
    try:
        if receiver.poll(MODEL_TIMEOUT_S):
            return receiver.recv()
        return ModelOutcome(model.name, unknown, reason=f"not done after {MODEL_TIMEOUT_S} s")
    except EOFError:
        process.join()
        return ModelOutcome(model.name, unknown, reason=f"its process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join()


def _send_outcome(name: str, sender: "Connection[ModelOutcome, Any]") -> None:
    sender.send(measure(PUBLISHED_MODELS[name]))
