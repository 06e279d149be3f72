"""``docs/pytorch_codes.md``, written from the outcomes."""

import re
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.measurement.host import Host
from bench.torch_codes.outcome import ModelOutcome

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pytorch_codes.md"
"""The page."""
MAX_REASON_LENGTH = 220
"""A reason of more characters is cut at a space."""
NONE = "–"
"""The cell of a missing value."""

HEAD = """# Published PyTorch models

`python -m bench.torch_codes --docs` writes this page: published models with random weights, most of them made smaller
where their constructors allow it, go through [`pulse.from_torch`](pytorch.md). {streamed} of {tried} stream, {plain} of
these as their authors wrote them.

{host} Two models ran at a time, one thread each, so times vary with what the other one did.

- *error*: the largest difference of the stream, flush included, from the module's own result for an input twice as
  long as the example, as a share of its largest value.
- *twin*: the same distance from the package's own streaming mode, where it has one.
- *delay* and *pulse*: in frames of the first output, and of the input. *minimum*: by gradients of the module in f64,
  no stream of this pulse can have less. Where several layers mirror their first frames (EnCodec, SoundStream, CRDNN), a
  stream that computed several frames at once in the beginning could have this delay; here each layer
  waits for what it mirrors, and the waits add up ([why](decisions/0007-mirrored-frames-in-the-window.md)). The bound
  may be too low: gradients that are too small for f64 count as zeros.
- *convert*: seconds from the module to a program, most of them in PyTorch's exporter. *step*: microseconds, median.
  *real-time factor*: seconds of computing for a second of input. *torch*: the same of the package's own streaming
  mode on one thread, in pulses of the same length; without such a mode, of the module on the whole input, marked *w*.
- *onnxruntime*: how many times longer a step takes there, on one thread and in turns: the same pulse of the same model,
  exported by this project with its states as inputs. {mean}

A dash says that there is none: no streaming mode of the package's own (*twin*), no gradients (*minimum*: of codes, of
several inputs), no frames (*delay*), no export that runs and returns the same result (*onnxruntime*).

## Streamed

"""
"""The beginning of the page."""

INSTALL = """
## Packages

```sh
pip install 'pulse-stream[torch]'
pip install --no-deps {pins}
```

PyTorch is {torch}. `--no-deps` leaves it alone; the packages need a few more small ones, which Python names when they
are imported. PyPI has no build of torchaudio for PyTorch without CUDA: its models are plain Python, and run from the
package without its folder `lib`.
"""
"""The end of the page: how to install the packages."""


def page(outcomes: Sequence[ModelOutcome]) -> str:
    """Return the whole page."""
    streamed = [outcome for outcome in outcomes if outcome.stage == "streamed"]
    others = [outcome for outcome in outcomes if outcome.stage != "streamed"]
    plain = [outcome for outcome in streamed if not outcome.change]
    text = HEAD.format(
        streamed=len(streamed),
        tried=len(outcomes),
        plain=len(plain),
        mean=_mean(streamed),
        host=f"{Host.here()}.".replace(", load", ",\nload"),
    )
    columns = (
        "model",
        "package",
        "exported",
        "error",
        "twin",
        "pulse",
        "delay",
        "minimum",
        "convert s",
        "step us",
        "real-time factor",
        "torch",
        "onnxruntime",
    )
    text += _table(columns, map(_streamed_row, streamed))
    text += "\n## Not streamed\n\n" + _table(("model", "package", "reason"), map(_refused_row, others))
    pins = {
        name: version
        for outcome in outcomes
        for name, version in outcome.packages.items()
        if version not in ("", "missing")
    }
    torch = pins.pop("torch", "not the version of this page")
    names = " ".join(f"{name}=={version.partition('+')[0]}" for name, version in sorted(pins.items()))
    return text + INSTALL.format(pins=names, torch=torch)


def _mean(outcomes: Iterable[ModelOutcome]) -> str:
    times = [outcome.onnxruntime for outcome in outcomes if outcome.onnxruntime is not None]
    if not times:
        return ""
    return f"Geometric mean of {len(times)} models: {statistics.geometric_mean(times):.1f}; lowest {min(times):.1f}."


def _streamed_row(outcome: ModelOutcome) -> Sequence[str]:
    return (
        outcome.name + (f" ({outcome.change})" if outcome.change else ""),
        _packages(outcome),
        outcome.exported,
        f"{outcome.error:.0e}",
        NONE if outcome.twin is None else f"{outcome.twin:.0e}",
        str(outcome.pulse),
        str(outcome.delays[0]) if outcome.delays else NONE,
        NONE if outcome.min_delay is None else str(outcome.min_delay),
        f"{outcome.convert_s:.0f}",
        f"{outcome.step_us:.0f}",
        f"{outcome.realtime:.3g}",
        NONE if outcome.author is None else f"{outcome.author:.3g}{' w' if outcome.twin is None else ''}",
        NONE if outcome.onnxruntime is None else f"{outcome.onnxruntime:.1f}",
    )


def _refused_row(outcome: ModelOutcome) -> Sequence[str]:
    reason = re.sub(r"\s+", " ", re.sub(r"/\S*/(?=[\w.]+\.py)", "", outcome.reason))
    if len(reason) > MAX_REASON_LENGTH:
        reason = reason[:MAX_REASON_LENGTH].rsplit(" ", 1)[0] + " …"
    return outcome.name, _packages(outcome), f"{outcome.stage}, then: {reason}".replace("|", "\\|")


def _packages(outcome: ModelOutcome) -> str:
    return ", ".join(f"{name} {version.partition('+')[0]}" for name, version in outcome.packages.items())


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
