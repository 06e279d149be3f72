"""A process that takes a large module to a program, and prints how much memory that takes beyond the module.

Warmed up by a small module, so that what is imported and compiled on first use does not count.
"""

import gc
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

import pulse

WIDTH, LAYERS = 1024, 32


def layers(width: int, count: int) -> Any:
    """Convolutions: ``count * (3 * width + 1) * width`` parameters."""
    return nn.Sequential(*(nn.Conv1d(width, width, 3) for _ in range(count)))


def program_of(module: Any, width: int) -> Any:
    model = pulse.from_torch(module, torch.randn(1, width, 80), dynamic={0: {2: "T"}})
    return model.analyse().declutter().pulsify(pulse=1).compile()


def resident(field: str) -> int:
    """Bytes of this process: VmRSS now, VmHWM at the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def main() -> None:
    """Weights, peak and rest in bytes, as JSON."""
    torch.set_num_threads(1)
    program_of(layers(64, 2), 64)
    module = layers(WIDTH, LAYERS)
    gc.collect()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    program = program_of(module, WIDTH)
    peak = resident("VmHWM") - before
    gc.collect()
    rest = resident("VmRSS") - before
    weights = sum(parameter.nbytes for parameter in module.parameters())
    print(json.dumps({"weights": weights, "peak": peak, "rest": rest, "rows": program.row_count}))


if __name__ == "__main__":
    main()
