"""Models and recordings in a folder next to the project on the machines of its developers; users do not have them."""

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("PULSE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def shared_path(name: str) -> Path:
    """A file or folder of the shared material; skips the test where it is missing."""
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"{name} is not here: set PULSE_SHARED to the folder that has it")
    return path
