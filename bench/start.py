"""From the start of Python to the first result: import, load, make ready, one step; each in a process of its own."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pulse
from bench.models import Entry, Explicit
from pulse.jit.levels import NATIVE
from pulse.jit.library import library

REPEATS = 3

OURS = """
import json, sys, time
begin = time.perf_counter()
import numpy, pulse
source, count, told = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
chunking = pulse.Chunking(context=json.loads(sys.argv[4]))
program = pulse.stream(pulse.load(source, chunking=chunking, **told), count)
(port,) = [port for port in program.inputs if port.streams]
program.spawn().step(numpy.zeros(port.shape, numpy.float32))
print(time.perf_counter() - begin)
"""

PROGRAM = """
import sys, time
begin = time.perf_counter()
import numpy, pulse
program = pulse.Program.load(sys.argv[1])
(port,) = [port for port in program.inputs if port.streams]
program.spawn().step(numpy.zeros(port.shape, numpy.float32))
print(time.perf_counter() - begin)
"""

OPTIMISE = """
import sys, onnxruntime
options = onnxruntime.SessionOptions()
options.optimized_model_filepath = sys.argv[2]
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(0)
"""

ONNXRUNTIME = """
import sys, time
begin = time.perf_counter()
import numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64}
session.run(None, {each.name: numpy.zeros(each.shape, types[each.type]) for each in session.get_inputs()})
print(time.perf_counter() - begin)
"""

TRACT = """
import sys, time
begin = time.perf_counter()
import numpy, tract
loaded = tract.onnx().load(sys.argv[1])
shapes = [str(loaded.input_fact(number)).split(",") for number in range(loaded.input_count())]
state = loaded.into_model().into_runnable().spawn_state()
types = {"F32": numpy.float32, "I64": numpy.int64}
state.run([numpy.zeros([int(size) for size in shape[:-1]], types[shape[-1].upper()]) for shape in shapes])
print(time.perf_counter() - begin)
"""


@dataclass(frozen=True)
class Start:
    """How long a runtime takes to give its first result, in seconds: the median of three processes, cold of one."""

    title: str
    runtime: str
    seconds: float


def starts(entry: Entry, cold: bool = True) -> Iterator[Start]:
    """This project with an empty and a filled kernel cache, with the machine code that the package carries if it is
    built, its program file, and the others on the exported file.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        source = entry.source()
        path.write_bytes(source.read_bytes() if isinstance(source, Path) else source.SerializeToString())
        arguments = [
            str(path),
            str(entry.pulse),
            json.dumps({name: value for name, value in entry.arguments.items() if name != "chunking"}),
            json.dumps(dict(entry.arguments.get("chunking", pulse.Chunking()).context)),
        ]
        if cold:
            empty = {"PULSE_CACHE": str(Path(folder) / "cache"), "PULSE_LEVEL": NATIVE}
            yield Start(entry.name, "pulse, cold", _seconds(OURS, arguments, empty))
        yield Start(entry.name, "pulse, warm", _median(OURS, arguments, {"PULSE_LEVEL": NATIVE}))
        if library() is not None:
            yield Start(entry.name, "pulse, carried", _median(OURS, arguments))
        program = entry.program(source)
        saved = Path(folder) / "model.pulse"
        program.save(saved)
        level = {} if library() is not None else {"PULSE_LEVEL": NATIVE}
        yield Start(entry.name, "pulse, program file", _median(PROGRAM, [str(saved)], level))
        exported = Path(folder) / "exported.onnx"
        exported.write_bytes(Explicit.of(program.model).model.SerializeToString())
        optimised = Path(folder) / "optimised.onnx"
        _seconds(OPTIMISE, [str(exported), str(optimised)])
        yield Start(entry.name, "onnxruntime, its own optimised file", _median(ONNXRUNTIME, [str(optimised)]))
        for runtime, code in (("onnxruntime", ONNXRUNTIME), ("tract", TRACT)):
            yield Start(entry.name, f"{runtime}, exported", _median(code, [str(exported)]))


def _median(code: str, arguments: list[str], more: Mapping[str, str] | None = None) -> float:
    return statistics.median(_seconds(code, arguments, more) for _ in range(REPEATS))


def _seconds(code: str, arguments: list[str], more: Mapping[str, str] | None = None) -> float:
    command = [sys.executable, "-c", code, *arguments]
    usual = {**os.environ, **(more or {})}
    usual.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles all modules
    done = subprocess.run(command, env=usual, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])
