"""Bad uses of ``pulse fleet`` give one line, with or without Ray; tests/streaming/fleet tests the fleet itself."""

import sys
from pathlib import Path

import pytest

from tests.streaming.command import refusal

pytestmark = pytest.mark.usefixtures("working_folder")


def test_wrong_uses_of_fleet_are_refused_with_a_way_out(tmp_path: Path) -> None:
    assert "the actions are deploy, status, drain, set-weight, end" in refusal("fleet", "begin")
    assert "name a worker" in refusal("fleet", "drain")
    assert "give the weight with --weight" in refusal("fleet", "set-weight", "2")
    assert "status takes no --weight; it belongs to set-weight" in refusal("fleet", "status", "--weight", "2")
    assert "status takes no 'w'" in refusal("fleet", "status", "w")
    assert "none.toml: no such file" in refusal("fleet", "deploy", "none.toml").lower()
    (tmp_path / "bad.toml").write_text("[fleet]\nmax_workers = 0")
    assert "bad.toml: min_workers = 2, max_workers = 0" in refusal("fleet", "deploy", "bad.toml")


def test_a_fleet_without_ray_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "streaming.fleet.ray_fleet", raising=False)
    monkeypatch.delitem(sys.modules, "streaming.fleet.ray_cluster", raising=False)
    assert "a fleet needs ray; pip install 'pulse-stream[fleet]'" in refusal("fleet", "status")
