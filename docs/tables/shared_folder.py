"""The folder of models and recordings next to the project on the machines of its developers."""

import os
from pathlib import Path

SHARED_FOLDER = Path(os.environ.get("PULSE_SHARED", Path(__file__).resolve().parents[3] / "shared"))
