"""The processes whose start is timed: in this project, in onnxruntime and in tract."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import pulse
from bench.models import Entry, Explicit
from pulse.jit.storage.package_library import library

TREE = Path(pulse.__file__).resolve().parents[1]
"""The folder of the packages that this process has imported: its processes import the same ones."""

PRINT_TIMES = """
print(time.perf_counter() - started_s, time.process_time())
"""
"""The end of a process that prints its times: those of the clock since its first import, of the CPU since its start."""

NUMPY = """
import time
started_s = time.perf_counter()
import numpy
"""
"""A process that imports numpy alone."""

OURS = """
import json, sys, time
started_s = time.perf_counter()
import numpy, pulse
source, count, options = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
chunking = pulse.Chunking(context=json.loads(sys.argv[4]))
program = pulse.stream(pulse.load(source, chunking=chunking, **options), count)
(port,) = [port for port in program.inputs if port.streams]
program.spawn().step(numpy.zeros(port.shape, numpy.float32))
"""
"""A process that loads, converts and steps a model file."""

PROGRAM = """
import sys, time
started_s = time.perf_counter()
import numpy, pulse
program = pulse.Program.load(sys.argv[1])
(port,) = [port for port in program.inputs if port.streams]
program.spawn().step(numpy.zeros(port.shape, numpy.float32))
"""
"""A process that loads a program file and steps."""

OPTIMISE = """
import sys, onnxruntime
options = onnxruntime.SessionOptions()
options.optimized_model_filepath = sys.argv[2]
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""
"""A process that writes the file that onnxruntime makes of a model, so that loading it optimises nothing."""

ONNXRUNTIME = """
import sys, time
started_s = time.perf_counter()
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64}
session.run(None, {port.name: numpy.zeros(port.shape, types[port.type]) for port in session.get_inputs()})
"""
"""A process that loads and runs a model in onnxruntime."""

TRACT = """
import sys, time
started_s = time.perf_counter()
import numpy, tract
loaded = tract.onnx().load(sys.argv[1])
shapes = [str(loaded.input_fact(index)).split(",") for index in range(loaded.input_count())]
state = loaded.into_model().into_runnable().spawn_state()
types = {"F32": numpy.float32, "I64": numpy.int64}
state.run([numpy.zeros([int(size) for size in shape[:-1]], types[shape[-1].upper()]) for shape in shapes])
"""
"""A process that loads and runs a model in tract."""

COMMAND = "from streaming.cli import main; main()"
"""A process that is a command of ``pulse``."""


@dataclass(frozen=True)
class StartProcess:
    """A row: a process that is timed.

    code         Python code; it sets ``started_s`` before its first import, unless ``whole``
    arguments    arguments of the process
    environment  variables in addition to those of this process
    whole        the process is a command, timed from outside
    """

    title: str
    runtime: str
    code: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    whole: bool = False

    def run(self, folder: Path) -> tuple[float, float]:
        """Run a command; return the seconds of the clock and of the CPU.

        Raises CalledProcessError: the command fails
        """
        code = self.code if self.whole else self.code + PRINT_TIMES
        usual = {**os.environ, "PYTHONPATH": str(TREE), **self.environment}
        usual.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles all modules
        usage_before, start_s = getrusage(RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-c", code, *self.arguments]
        process = subprocess.run(command, cwd=folder, env=usual, capture_output=True, text=True, check=True)
        seconds, usage_after = time.perf_counter() - start_s, getrusage(RUSAGE_CHILDREN)
        if self.whole:
            return (
                seconds,
                usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime,
            )
        seconds, cpu_s = map(float, process.stdout.split()[-2:])
        return seconds, cpu_s


def start_processes(entry: Entry, folder: Path) -> Iterator[StartProcess]:
    """Yield the model file and the program file in this project, and the exported model in the others."""
    path, source = folder / "model.onnx", entry.source()
    path.write_bytes(source.read_bytes() if isinstance(source, Path) else source.SerializeToString())
    arguments = [
        str(path),
        str(entry.pulse),
        json.dumps({name: value for name, value in entry.arguments.items() if name != "chunking"}),
        json.dumps(dict(entry.arguments.get("chunking", pulse.Chunking()).context)),
    ]
    how = "compiled before" if library() is None else "carried"
    yield StartProcess(entry.name, f"pulse, model file, kernels {how}", OURS, arguments)
    program, saved = entry.program(source), folder / "model.pulse"
    program.save(saved)
    yield StartProcess(entry.name, "pulse, program file", PROGRAM, [str(saved)])
    model_file = folder / "exported.onnx"
    model_file.write_bytes(Explicit.of(program.model).model.SerializeToString())
    for suffix in ("onnx", "ort"):
        optimised = str(folder / f"optimised.{suffix}")
        subprocess.run(
            [sys.executable, "-c", OPTIMISE, str(model_file), optimised], capture_output=True, check=True
        )
        yield StartProcess(
            entry.name, f"onnxruntime, its own optimised .{suffix} file", ONNXRUNTIME, [optimised]
        )
    for runtime, code in (("onnxruntime", ONNXRUNTIME), ("tract", TRACT)):
        yield StartProcess(entry.name, f"{runtime}, exported", code, [str(model_file)])
