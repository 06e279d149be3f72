"""``python -m bench.library``: steps and start of libraries of ``pulse build``, and the same programs in Python."""

import os
import subprocess
import sys
from tempfile import TemporaryDirectory

from bench.library.times import BUILTIN, LEVEL_VARIABLE
from pulse.jit.levels import LEVELS

MODELS = (BUILTIN, "gtcrn")
"""The models of a run without arguments."""


def main() -> None:
    """Measure each model in a separate process, in which kernels are of the level of the library."""
    level = next(level.name for level in LEVELS.values() if not level.missing_features)
    for name in sys.argv[1:] or MODELS:
        with TemporaryDirectory() as folder:
            imports = "from pathlib import Path; from bench.library.times import measure"
            code = f"{imports}; measure({name!r}, Path({folder!r}))"
            subprocess.run(
                [sys.executable, "-c", code], env={**os.environ, LEVEL_VARIABLE: level}, check=True
            )


if __name__ == "__main__":
    main()
