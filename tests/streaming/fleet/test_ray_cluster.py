"""Calls of actors, without a cluster: what is not an answer, and lookups from several threads."""

from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="needs the extra fleet")

from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError  # noqa: E402

from streaming.fleet.cluster import MemberFailure  # noqa: E402
from streaming.fleet.ray_cluster import Actors, ask_actors  # noqa: E402


class ScriptedActor:
    """An actor whose calls have this result."""

    def __init__(self, result: Any) -> None:
        self.result, self.status = result, self

    def remote(self) -> "ScriptedActor":
        return self


def test_only_a_lost_actor_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is briefly out of reach has not answered."""

    def get(call, timeout):
        if isinstance(call.result, Exception):
            raise call.result
        return call.result

    monkeypatch.setattr(ray, "get", get)
    monkeypatch.setattr(ray, "wait", lambda calls, num_returns, timeout: (calls, []))
    results = {
        "well": 7,
        "late": GetTimeoutError(),
        "unavailable": ActorUnavailableError("no route", b"a" * 16),
        "dead": ActorDiedError(),
    }
    actors = {name: ScriptedActor(result) for name, result in results.items()}
    answers = ask_actors(actors, "status", (), 1.0)
    assert isinstance(answers.pop("dead"), MemberFailure)
    assert answers == {"well": 7}


def test_a_lookup_finds_actors_that_another_thread_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    actors = Actors("fleet")
    actors.add("a", "the actor a")

    def forget_all_and_find(name, namespace):
        actors.keep(())
        return f"the actor {name}"

    monkeypatch.setattr(ray, "get_actor", forget_all_and_find)
    assert actors.actors_of(["a", "b"]) == {"a": "the actor a", "b": "the actor b"}
