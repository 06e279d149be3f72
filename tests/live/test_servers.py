"""JACK servers of several test processes do not collide."""

import os
import subprocess
import sys
from pathlib import Path

from bench.live.server import jack_server
from tests.live.own_process import LIMIT_S
from tests.live.servers import server_or_skip
from tests.sources import ROOT

ANOTHER = """
from bench.live.server import jack_server
with jack_server() as server: print(server.name, len(server.ports()))
"""


def test_other_temporary_folders_have_other_servers(tmp_path: Path) -> None:
    """JACK keeps one list of server names per machine."""
    with server_or_skip(jack_server()) as server:
        process = subprocess.run(
            [sys.executable, "-c", ANOTHER],
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        name, ports = process.stdout.split()
        assert name != server.name
        assert int(ports) == len(server.ports()) == 4
