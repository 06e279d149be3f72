"""One line for each bad use of ``pulse fleet``, with or without Ray; what it does is in tests/streaming/fleet."""

import sys

from tests.streaming.command import folder as folder
from tests.streaming.command import refused


def test_bad_uses(tmp_path):
    assert "the actions are deploy, status, drain, weigh, end" in refused("fleet", "begin")
    assert "name a worker" in refused("fleet", "drain")
    assert "needs --weight" in refused("fleet", "weigh", "2")
    assert "nothing else takes it" in refused("fleet", "status", "--weight", "2")
    assert "status takes no 'w'" in refused("fleet", "status", "w")
    assert "none.toml: no such file" in refused("fleet", "deploy", "none.toml").lower()
    (tmp_path / "bad.toml").write_text("[fleet]\nmost = 0")
    assert "bad.toml: least = 2, most = 0" in refused("fleet", "deploy", "bad.toml")


def test_ray_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "streaming.fleet.ray_fleet", raising=False)
    monkeypatch.delitem(sys.modules, "streaming.fleet.ray_cluster", raising=False)
    assert "a fleet needs ray; pip install 'pulse-stream[fleet]'" in refused("fleet", "status")
