"""Broken archives of NNEF, by number: words of the text, bytes of tensors and of the archive changed at random."""

import re
from functools import cache

import numpy as np

import pulse
from pulse.nnef.archive import Archive
from pulse.nnef.recognition import GRAPH
from pulse.nnef.write.model import to_nnef
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.families import all_cases
from tests.pulse.nnef.folders import pack
from tests.pulse.program.static_models import fixed_specs, static_model

EACH = 45
"""One of this many operator cases is a seed."""
WORDS = (
    "0", "-1", "1", "2", "7", "1e9", "99999999999999999999", "1.5", "[]", "[1]", "()", "(1, 2)", "true", "x", "y", "T",
    "\"x\"", "-", "^", "if", "else", "for", "fragment", "variable", "external", "[1] * 1000000", "{", "}", ";",
    "tract_core_scan",
)  # fmt: skip
TRACT = """version 1.0;
extension tract_registry tract_core;
extension tract_registry tract_pulse;
extension tract_symbol T;
fragment tract_core_properties() -> (properties: (string, tensor<scalar>)[])
{
    properties = [("pulse.delay", tract_core_cast([3], to = "i64")),
        ("pulse.input_axes", tract_core_cast([2], to = "i64")),
        ("pulse.output_axes", tract_core_cast([2], to = "i64")), ("pulse.streaming_symbol", ["T"])];
}
fragment body(s: tensor<scalar>, f: tensor<scalar>) -> (n: tensor<scalar>) { n = s * 0.5 + f; }
graph network(x) -> (y)
{
    x = external(shape = [1, 2, 4]);
    late = tract_pulse_delay(x, axis = 2, delay = 0, overlap = 2);
    padded = tract_pulse_pulse_pad(late, axis = 2, before = 1, begin_input = 2, overlap = 2, after = 1,
        end_input = T + 2, border = "constant", value = 0.5);
    pooled = box(padded, size = [1, 1, 3], border = "ignore", padding = [(0, 0), (0, 0), (0, 0)], normalize = true);
    beside = tract_pulse_delay(x, axis = 2, delay = 1, overlap = 0);
    later = tract_pulse_delay(pooled + beside, axis = 2, delay = 2, overlap = 0);
    summed = tract_pulse_cumsum(later, axis = 2, skip = 3);
    zero = [[[0.0], [0.0]]];
    y = tract_core_scan(body = "body", scan = [("f", summed, 2, 1)], full = [], state = [("s", zero, "n")],
        output = [("n", "full", 2, 1)], skip = 3);
}
"""
"""A model as tract writes its own pulses."""
TOKEN = re.compile(r"\w+|[^\w\s]")


def _streams() -> list[Archive]:
    conv = model(
        [
            node("Conv", "x w", "c", pads=[2, 0]),
            node("Transpose", "c", "t", perm=[2, 0, 1]),
            node("GRU", "t a r", "y", hidden_size=2),
        ],
        {"x": floats("x", 1, 2, 9)},
        {"w": floats("w", 3, 2, 3), "a": floats("a", 1, 6, 3), "r": floats("r", 1, 6, 2)},
        stream={"x": 2},
    )
    typed = pulse.load(conv).analyse()
    return [to_nnef(typed.declutter()), to_nnef(typed.declutter().pulsify(pulse=2))]


@cache
def seeds() -> tuple[dict[str, bytes], ...]:
    """The files of good archives: single operators, and layers with open time and in pulses."""
    files_of_models: list[dict[str, bytes]] = []
    for name, source, feeds in [case for case in all_cases() if case[0].endswith("-fixed")][::EACH]:
        try:
            files_of_models.append(
                to_nnef(static_model(pulse.load(source, inputs=fixed_specs(feeds)).model.analyse())).files()
            )
        except pulse.PulseError:
            assert name
    return (*files_of_models, *[*(archive.files() for archive in _streams()), {GRAPH: TRACT.encode()}] * 6)


def mutated_archive(number: int) -> tuple[str, bytes]:
    """The archive of a number, and how it came about."""
    rng = np.random.default_rng(number)
    files = dict(seeds()[int(rng.integers(len(seeds())))])
    how = ("text", "text", "text", "tensor", "archive")[int(rng.integers(5))]
    if how == "text":
        files[GRAPH] = reword(files[GRAPH].decode(), rng).encode()
    labels = [name for name in files if name != GRAPH]
    if how == "tensor" and labels:
        name = labels[int(rng.integers(len(labels)))]
        files[name] = damage(files[name], rng, 60)
    content = pack(files, compressed=bool(rng.integers(2)))
    return f"{number}: {how}", damage(content, rng, len(content)) if how == "archive" else content


def reword(text: str, rng: np.random.Generator) -> str:
    for _ in range(int(rng.integers(1, 4))):
        places = [match.span() for match in TOKEN.finditer(text)]
        start, stop = places[int(rng.integers(len(places)))]
        other = places[int(rng.integers(len(places)))]
        word = text[slice(*other)] if rng.random() < 0.4 else WORDS[int(rng.integers(len(WORDS)))]
        text = text[:start] + ("" if rng.random() < 0.15 else word) + text[stop:]
    return text


def damage(data: bytes, rng: np.random.Generator, reach: int) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        changed[int(rng.integers(min(reach, len(changed))))] = int(rng.choice([0, 1, 2, 4, 0x7F, 0x80, 0xFF]))
    return bytes(changed[: int(rng.integers(len(changed)))] if rng.random() < 0.1 else changed)
