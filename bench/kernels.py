"""``python -m bench.kernels``: how far each kernel is from its limit, over the models of the bench, as a table.

The roofline of an instruction is its bytes at the bandwidth of the program's working set, or its multiply-adds at the
peak, whichever takes longer; both are measured first. *times* is the time of all instructions of a kernel over their
roofline.
"""

from pathlib import Path

import pulse
from bench.measurement.roofline import measured_machine, working_set
from bench.models import PUBLISHED
from bench.models.tcn import tcn
from pulse.program.native.native_program import NativeProgram
from pulse.program.native.native_state import NativeState

ALIGNMENT_BYTES = 4096
"""Working sets are rounded down to a multiple of this many bytes, as bandwidth is measured."""
PUBLISHED_STREAMS = ("gtcrn_offline.onnx", "fireredvad_stream.onnx", "swift_f0.onnx")
"""Files of published models, in addition to the models of the bench."""


def programs(folder: Path) -> list[NativeProgram]:
    """Return the TCN, and the published offline models that are there."""
    models = [pulse.stream(tcn(), pulse=1), pulse.stream(tcn(), pulse=8)]
    for name in PUBLISHED_STREAMS:
        if (folder / name).is_file():
            models.append(pulse.stream(folder / name))
    return [program for program in models if isinstance(program, NativeProgram)]


def main() -> None:
    """Print the table."""
    times: dict[str, list[float]] = {}
    for program in programs(PUBLISHED):
        machine = measured_machine([working_set(program) // ALIGNMENT_BYTES * ALIGNMENT_BYTES])
        ((_, bandwidth),) = machine.bandwidth
        state = program.spawn()
        assert isinstance(state, NativeState)
        for row in state.profile().rows:
            min_s = max(row.cost.bytes / bandwidth, row.cost.multiply_adds / machine.multiply_adds_per_s)
            sums = times.setdefault(row.kernel, [0, 0.0, 0.0])
            sums[0] += row.instructions
            sums[1] += row.seconds_per_step
            sums[2] += min_s
    print("| kernel | instructions | us | roofline us | times |\n| --- | ---: | ---: | ---: | ---: |")
    for kernel, (count, seconds, min_s) in sorted(times.items(), key=lambda item: -item[1][1]):
        print(
            f"| `{kernel}` | {count:.0f} | {seconds * 1e6:.1f} | {min_s * 1e6:.1f} | {seconds / min_s:.1f} |"
        )


if __name__ == "__main__":
    main()
