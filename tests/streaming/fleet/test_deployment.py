"""The settings of a fleet: the settings of a server and a table [fleet]."""

from pathlib import Path

import pytest

from pulse.errors import InputError
from streaming.fleet.deployment import Deployment, read_deployment

FILE = """
host = "0.0.0.0"
tokens = ["secret"]
checkpoint_s = 0.5

[fleet]
version = "2026-11"
min_workers = 3
load = 1
url = "wss://{host}.example:{port}"

[[model]]
path = "model.onnx"
"""


def write_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    deployment = read_deployment(write_file(tmp_path, FILE))
    assert (deployment.version, deployment.min_workers, deployment.load) == ("2026-11", 3, 1.0)
    assert deployment.server.models[0].path == tmp_path / "model.onnx"
    assert (deployment.server.host, deployment.server.port, deployment.server.checkpoint_s) == (
        "0.0.0.0",
        0,
        0.5,
    )
    assert deployment.address("10.0.0.1", 80) == "wss://10.0.0.1.example:80"


def test_addresses_are_urls() -> None:
    assert Deployment().address("10.0.0.1", 80) == "ws://10.0.0.1:80"
    assert Deployment().address("fe80::1", 80) == "ws://[fe80::1]:80"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fleet = 3", "fleet = 3 must be a table"),
        ("[fleet]\nworkers = 3", "[fleet]: unknown key 'workers' (did you mean min_workers?)"),
        ("[fleet]\nserver = 3", "unknown key 'server'"),
        ("[fleet]\nmin_workers = 2.5", "must be an integer"),
        ("[fleet]\nmin_workers = true", "must be an integer"),
        ("[fleet]\nload = '1'", "must be a number"),
        ("[fleet]\nversion = 1", "version = 1 must be text"),
        ("[fleet]\nversion = 'a.b'", "use up to 32 letters, digits, - or _"),
        ("[fleet]\nmin_workers = 0", "1 <= min_workers <= max_workers"),
        ("[fleet]\nmin_workers = 9", "1 <= min_workers <= max_workers"),
        ("[fleet]\nload = 1.5", "at most 1"),
        ("[fleet]\ncopies = 0", "copies = 0: must be above 0"),
        ("[fleet]\nweight = -1", "weight = -1: must be at least 0"),
        ("[fleet]\nweight = nan", "weight = nan"),
        ("[fleet]\ndown_after_s = inf", "down_after_s = inf: must be at least 0, and finite"),
        ("keep_s = 0", "keep_s = 0: must be above 0"),
        ("[fleet]\nurl = 'ws://{node}'", "only {host} and {port}"),
        ("checkpoints = 'folder'", "the other machines hold them"),
        ("[[model]]\nevents = {out = {kind = 'segments'}}", "do not contain event detectors"),
        ("[fleet", "not TOML"),
    ],
)
def test_errors_in_a_deployment_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_deployment(write_file(tmp_path, text))
    assert message in str(error.value)
    assert "fleet.toml" in str(error.value)
