"""Models in processes of their own, some at once."""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

from bench.torch_codes.measurement import Outcome, measure
from bench.torch_codes.models import (
    attention,
    codecs,
    enhancers,
    features,
    recognisers,
    recurrences,
    transforms,
)
from bench.torch_codes.published_model import CODES, Code

GROUPS = (codecs, enhancers, recognisers, features, transforms, attention, recurrences)
"""The modules that add the models."""
CODE_TIMEOUT_S = 600
"""A model that is not done after this many seconds is reported as such."""


def run_all(names: Sequence[str], jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes of models, ``jobs`` at once, each in a separate process, as they end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bench.torch_codes.preload"])
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(run, context, CODES[name]) for name in names]):
            yield future.result()


def run(context: ForkServerContext, code: Code) -> Outcome:
    """Run a model in a process of ``context``; return its outcome, which says so if the process ends without one."""
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_outcome, args=(code.name, sender))
    process.start()
    sender.close()
    unknown = dict.fromkeys(code.packages, "")
    try:
        if receiver.poll(CODE_TIMEOUT_S):
            return receiver.recv()
        return Outcome(code.name, unknown, reason=f"not done after {CODE_TIMEOUT_S} s")
    except EOFError:
        process.join()
        return Outcome(code.name, unknown, reason=f"its process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join()


def _send_outcome(name: str, sender: "Connection[Outcome, Any]") -> None:
    sender.send(measure(CODES[name]))
