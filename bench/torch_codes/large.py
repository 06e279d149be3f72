"""``python -m bench.torch_codes.large``: large published modules compared with the roofline, and the page of them.

Programs are made first, which takes minutes of PyTorch's exporter, and measured later, on a quiet machine.
"""

import argparse
import json
import statistics
import textwrap
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import pulse
from bench.measurement.host import Host
from bench.measurement.roofline import BandwidthProbe, measured_machine, roofline
from bench.torch_codes.models.codecs import mimi_decoder, mimi_encoder
from bench.torch_codes.published_model import ModuleCase
from pulse.program.file.stored_program import read_program
from pulse.program.native.native_program import NativeProgram

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pytorch_large.md"
"""The page."""
COSTS_FILE = "costs.json"
"""The file of parameters and costs in the folder of the exported modules."""
THREADS = (1, 2)
"""Numbers of threads that a step is measured with."""
WORKING_SET_BYTES = (1 << 20, 1 << 26)
"""Bytes of the working sets with which the machine is measured; each program adds its own."""
STEPS_S = 1.5
"""Seconds for which a program is timed, in all rounds."""
ROUNDS = 3
"""Rounds in which the programs alternate."""
HEAD = """# Large modules from PyTorch

`python -m bench.torch_codes.large --prepare DIR` exports the modules of this page, with random weights, and compiles
them; `--measure DIR --docs` measures the programs and writes the page.

{host}

- *us*: of a step, median, with one thread and with two, in turns. *real time*: seconds of computing for a second of
  input, one thread.
- *memory*: the minimum time to read the weights and the state once, at the speed with which one thread reads a working
  set of this size here. *arithmetic*: that of the products, at the speed of one thread's registers.
- *times*: the step of one thread as a multiple of the larger of both. What is above 1 is what could be gained.

"""
"""The beginning of the page."""


@dataclass(frozen=True)
class Costs:
    """The figures of one step that do not depend on the machine.

    rate_hz  frames of the input per second
    bytes    bytes of weights and state, each instruction's once
    """

    parameters: int
    rate_hz: float
    pulse: int
    bytes: int
    working_set: int
    multiply_adds: int


def large_hifigan() -> ModuleCase:
    """Return the generator in the sizes of its paper, V1."""
    torch, package = import_module("torch"), import_module("speechbrain.lobes.models.HifiGAN")
    sizes = [[1, 3, 5], [1, 3, 5], [1, 3, 5]], [3, 7, 11], [16, 16, 4, 4], 512, [8, 8, 2, 2]
    return ModuleCase(package.HifiganGenerator(80, 1, "1", *sizes), torch.randn(1, 80, 20), 22050 / 256)


def large_mistral() -> ModuleCase:
    """Return fourteen layers of width 768; each frame sees 100."""
    torch, package = import_module("torch"), import_module("transformers")
    config = package.MistralConfig(
        vocab_size=64,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=14,
        num_attention_heads=12,
        num_key_value_heads=12,
        sliding_window=100,
        use_cache=False,
    )
    example = {"inputs_embeds": torch.randn(1, 120, 768)}
    options = {"dynamic": {"inputs_embeds": {1: "T"}}}
    return ModuleCase(package.MistralModel(config), example, 50, options=options)


MODULES: Mapping[str, Callable[[], ModuleCase]] = {
    "Mimi decoder (moshi)": mimi_decoder,
    "Mimi encoder (moshi)": mimi_encoder,
    "HiFi-GAN V1 (speechbrain)": large_hifigan,
    "Mistral, 14 layers, window of 100 (transformers)": large_mistral,
}
"""The modules of the page, by the name in the table."""


def main() -> None:
    """Prepare the programs, or measure them."""
    parser = argparse.ArgumentParser(prog="python -m bench.torch_codes.large", description=main.__doc__)
    parser.add_argument("names", nargs="*", help="modules to prepare; all by default")
    parser.add_argument(
        "--prepare", type=Path, metavar="DIR", help="export and compile; writes to this folder"
    )
    parser.add_argument("--measure", type=Path, metavar="DIR", help="measure what --prepare wrote there")
    parser.add_argument("--docs", action="store_true", help=f"write {PAGE.name}; otherwise print it")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in MODULES]:
        parser.error(f"no module is called {', '.join(unknown)}; choose from {', '.join(MODULES)}")
    if options.prepare is not None:
        prepare(options.names or list(MODULES), options.prepare)
    if options.measure is not None:
        text = page(options.measure)
        if options.docs:
            PAGE.write_text(text)
        else:
            print(text)


def prepare(names: Sequence[str], folder: Path) -> None:
    """Write the programs of modules, and their costs."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / COSTS_FILE
    costs: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        case = MODULES[name]()
        parameters = sum(parameter.numel() for parameter in case.module.parameters())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pulse.PulseWarning)
            program = pulse.stream(
                pulse.from_torch(case.module, case.example, **case.options),
                pulse=case.pulse,
            )
        assert isinstance(program, NativeProgram)
        (folder / f"{name}.pulse").write_bytes(program.to_bytes())
        bounds = roofline(program, 1.0, 1.0)
        costs[name] = asdict(
            Costs(
                parameters=parameters,
                rate_hz=case.rate_hz,
                pulse=program.pulse,
                bytes=bounds.bytes,
                working_set=bounds.working_set,
                multiply_adds=bounds.multiply_adds,
            )
        )
        path.write_text(json.dumps(costs, indent=1))


def page(folder: Path) -> str:
    """Return the page: each prepared module measured."""
    host = textwrap.fill(f"{Host.here()}. All times are from this machine in this state.", 120)
    multiply_adds_per_s = measured_machine(WORKING_SET_BYTES).multiply_adds_per_s
    costs = json.loads((folder / COSTS_FILE).read_text())
    columns = "module", "parameters", "pulse", "us, 1 thread", "us, 2 threads", "real time", "memory us"
    rows = [[*columns, "arithmetic us", "times"], ["---"] * 9]
    for name in MODULES:
        if name in costs:
            rows.append([name, *measure(folder / f"{name}.pulse", Costs(**costs[name]), multiply_adds_per_s)])
    return HEAD.format(host=host) + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def measure(path: Path, costs: Costs, multiply_adds_per_s: float) -> list[str]:
    """Return the cells of a program."""
    reading = BandwidthProbe(costs.working_set)
    memory_us = costs.bytes / (reading.bytes / reading.seconds()) * 1e6
    arithmetic_us = costs.multiply_adds / multiply_adds_per_s * 1e6
    own_us, two_us = step_us(path)
    return [
        f"{costs.parameters / 1e6:.1f} M",
        str(costs.pulse),
        f"{own_us:,.0f}",
        f"{two_us:,.0f}",
        f"{own_us * 1e-6 * costs.rate_hz / costs.pulse:.3f}",
        f"{memory_us:,.0f}",
        f"{arithmetic_us:,.0f}",
        f"{own_us / max(memory_us, arithmetic_us):.2f}",
    ]


def step_us(path: Path) -> list[float]:
    """Return the median of a step for each number of threads, measured in turns."""
    programs = [read_program(path).with_threads(threads) for threads in THREADS]
    rng = np.random.default_rng(0)
    feeds = {
        port.name: rng.standard_normal(port.shape).astype(port.dtype)
        if np.dtype(port.dtype).kind == "f"
        else np.zeros(port.shape, port.dtype)
        for port in programs[0].inputs
    }
    states = [program.spawn() for program in programs]
    times: list[list[float]] = [[] for _ in programs]
    for _ in range(ROUNDS):
        for state, durations in zip(states, times):
            state.step(feeds)
            until = time.perf_counter() + STEPS_S / ROUNDS
            while time.perf_counter() < until:
                started_s = time.perf_counter()
                state.step(feeds)
                durations.append(time.perf_counter() - started_s)
    return [statistics.median(durations) * 1e6 for durations in times]


if __name__ == "__main__":
    main()
