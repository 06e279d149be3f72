"""Admission: whether a stream may be opened, and which worker steps it."""

import hmac
from collections import Counter
from collections.abc import Sequence

from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import count_of
from streaming.protocol.errors import ProtocolError
from streaming.protocol.messages import Hello
from streaming.serve.hosted_model import HostedModel
from streaming.serve.lanes.lane_worker import LaneWorker
from streaming.serve.settings import ServerSettings

MAX_LOOP_LOAD = 0.9
"""Maximum fraction of its time that the event loop may be busy."""
MAX_PACKED_LOAD = 0.4
"""The load of a thread up to which it gets new streams before another thread does."""


class Admission(NotCopyable, reason="it belongs to a running server"):
    """Decides which streams are accepted. All refusals are ProtocolErrors with a hint.

    loop_fraction  fraction of the last second in which the event loop computed; the server sets it
    """

    def __init__(
        self, settings: ServerSettings, models: Sequence[HostedModel], workers: Sequence[LaneWorker]
    ) -> None:
        self._settings = settings
        self._models = {model.name: model for model in models}
        self._first = models[0]
        self._workers = workers
        self._addresses = Counter[str]()
        self.loop_fraction = 0.0
        self.draining = False

    def knows_token(self, token: str | None) -> bool:
        """Return whether the server has this token, or none at all."""
        tokens = self._settings.tokens
        secret = (token or "").encode()
        return not tokens or sum(hmac.compare_digest(secret, known.encode()) for known in tokens) > 0

    def admit(self, address: str) -> None:
        """Count a connection from an address; call ``leave`` at its end."""
        if self.draining:
            raise ProtocolError("drain", "the server is about to end", "connect again later")
        max_streams = self._settings.limits.streams_per_address
        if self._addresses[address] >= max_streams:
            raise ProtocolError(
                "address", f"{address} has {count_of(max_streams, 'stream')}", "close one of them"
            )
        self._addresses[address] += 1

    def leave(self, address: str) -> None:
        """Count the end of an accepted connection."""
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def model(self, hello: Hello, token: str | None) -> HostedModel:
        """Return the model that a client requests; ``token`` is from its headers."""
        if not self.knows_token(hello.token if token is None else token):
            raise ProtocolError(
                "token", "the token is missing or wrong", "give the hello a token of the server"
            )
        model = self._first if hello.model is None else self._models.get(hello.model)
        if model is None:
            raise ProtocolError(
                "model", f"unknown model {hello.model!r}", f"choose one of {', '.join(self._models)}"
            )
        return model

    def worker(self, model: HostedModel) -> LaneWorker:
        """Choose the worker for a new stream, among those with a free lane of the model.

        The first one while its load is low, since large groups and few threads need less of Python's time;
        then the one with the lowest load.
        """
        if self.loop_fraction > MAX_LOOP_LOAD:
            raise ProtocolError(
                "busy",
                f"the event loop is busy {self.loop_fraction:.0%} of the time",
                "send larger blocks, try again later, or use another server",
            )
        free = [worker for worker in self._workers if model.has_lane(worker)]
        if not free:
            raise ProtocolError(
                "busy",
                f"{model.name} has {count_of(model.settings.streams, 'stream')}, the maximum",
                "try again later",
            )
        idle = [
            worker for worker in free if self.thread_load(worker) + model.thread_fraction <= MAX_PACKED_LOAD
        ]
        best = idle[0] if idle else min(free, key=self.thread_load)
        if not any(hosted.open_streams for hosted in self._models.values()):
            if model.median_thread_fraction > 1:
                raise ProtocolError(
                    "busy",
                    f"a step of {model.name} takes {model.median_thread_fraction:.1f} times as long as its audio",
                    "use a faster machine or a larger pulse",
                )
        elif self.thread_load(best) + model.thread_fraction > self._settings.budget:
            raise ProtocolError(
                "busy",
                f"the steps of the open streams fill {self.thread_load(best):.0%} of a thread, and one of {model.name} "
                f"takes {model.thread_fraction:.1%} more",
                "try again later, or use another server",
            )
        return best

    def thread_load(self, worker: LaneWorker) -> float:
        """Return the fraction of a worker's time that its streams use, by the p99 of their steps."""
        return sum(model.thread_load(worker) for model in self._models.values())
