"""Models and recordings in a folder next to the project on the machines of its developers; users do not have them."""

from pathlib import Path

import pytest

from docs.tables.shared_folder import SHARED_FOLDER


def shared_path(name: str) -> Path:
    """A file or folder of the shared material; skips the test where it is missing."""
    path = SHARED_FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is not here: set PULSE_SHARED to the folder that has it")
    return path
