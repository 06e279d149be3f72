"""Bad uses of ``pulse serve`` give one line with a way out; tests/streaming/serve tests the server itself."""

import socket
from pathlib import Path

import pytest

from tests.streaming.command import refusal

pytest.importorskip("uvicorn", reason="needs the extra serve")
pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("none.onnx", "none.onnx: no such file; check the path"),
        ("--config none.toml", "none.toml: no such file; check the path"),
        ("--config folder", "folder: is a folder; give the file of settings in TOML in it"),
        ("--config bytes", "bytes: is not text in UTF-8; give a file of settings in TOML"),
        ("--tokens none.txt", "none.txt: no such file; check the path"),
        ("--tokens folder", "folder: is a folder; give the file of tokens in it"),
        ("--tokens bytes", "bytes: is not text in UTF-8; give a file of tokens"),
        ("--tokens empty", "empty: contains no token; write one per line"),
        ("--certificate none.crt --key empty", "none.crt: no such file; check the path"),
        ("--certificate empty --key none.key", "none.key: no such file; check the path"),
        ("--certificate empty --key empty", "empty, empty: are not a certificate and its key in PEM"),
    ],
)
def test_files_that_cannot_be_read_are_refused_with_a_way_out(
    tmp_path: Path, arguments: str, message: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(bytes(range(128, 256)))
    (tmp_path / "empty").touch()
    assert message in refusal("serve", *arguments.split())


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("203.0.113.1", "host 203.0.113.1: is not an address of this machine; choose one with --host"),
        (
            "name.invalid",
            "host name.invalid: not an IP address, and the name does not resolve; give an address",
        ),
    ],
)
def test_other_hosts_are_refused_with_a_way_out(host: str, message: str) -> None:
    assert message in refusal("serve", "--host", host, "--port", 0)


def test_a_port_in_use_is_refused_with_a_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        message = refusal("serve", "--port", port)
    assert f"port {port} of 127.0.0.1: is in use, perhaps by another server; end that one" in message
    assert "choose another port with --port (0: any free one)" in message
    assert "Errno" not in message
