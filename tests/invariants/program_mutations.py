"""Broken program files, by number: changed bytes, and changed headers, tables and weights with a correct checksum."""

from functools import cache
from typing import Any

import numpy as np

import pulse
from pulse.program.file.container import Container, encode, open_container
from pulse.program.native.native_program import NativeProgram
from pulse.program.program import Program
from pulse.program.table.memory import Region
from tests.invariants.mutations import FLOATS, INTEGERS, TEXTS, Random, cut, flip_bits, move_bytes
from tests.pulse.cases.families import cases
from tests.pulse.program.programs import program

SECTIONS = ("table", "initial", "notes", "weights")
CASES = (
    ("recurrent", "GRU_forward-14-T"),
    ("recurrent", "LSTM_forward-14-T"),
    ("attention", "attention_window_True"),
    ("cumulative", "CumSum_0_0_0-14-T"),
)
NAMES = ("windows", "matrix", "transform", "limited", "constant")


@cache
def whole_files() -> tuple[tuple[str, bytes], ...]:
    """Program files of several kinds, the larger kernels among them."""
    programs = [(name, program(name, "numba", form)) for name in NAMES for form in ("f32", "int8")]
    programs += [(name, _case(family, name)) for family, name in CASES]
    return tuple(
        (name, program.to_bytes()) for name, program in programs if isinstance(program, NativeProgram)
    )


def _case(family: str, expected: str) -> Program:
    """The program of a case by its name."""
    return next(pulse.stream(proto, 4) for name, proto, _ in cases(family) if name == expected)


def mutated_program(number: int) -> tuple[str, bytes]:
    """The file of a number, and how it came about."""
    rng = np.random.default_rng(number)
    name, data = whole_files()[int(rng.integers(len(whole_files())))]
    kind = rng.choice(["bytes", "header", "table", "table", "table", "weights", "initial", "notes"])
    if kind == "bytes":
        change = (flip_bits, cut, move_bytes)[int(rng.integers(3))]
        return f"{number}: {name} {change.__name__}", change(data, rng)
    container = open_container(data)
    sections = {section: container.section(section).copy() for section in SECTIONS}
    header = {key: value for key, value in container.header.values.items() if key != "sections"}
    if kind == "header":
        _change_leaf(header, rng)
    elif kind == "table":
        _change_words(container, sections["table"].view(np.int64), rng)
    else:
        _change_bytes(sections[str(kind)], rng)
    return f"{number}: {name} {kind}", encode(header, sections)


def _change_leaf(value: Any, rng: Random) -> None:
    """Drop or change a value somewhere in JSON."""
    while True:
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.9:
            value = value[key]
            continue
        if rng.random() < 0.1:
            del value[key]
        else:
            value[key] = _other(value[key], rng)
        return


def _other(value: Any, rng: Random) -> Any:
    if isinstance(value, int) and rng.random() < 0.5:
        return value + int(rng.choice([-64, -8, -4, -1, 1, 4, 8, 64, 1 << 20]))
    if isinstance(value, str) and rng.random() < 0.3:
        lengths = (
            "T*T*T",
            "T/0",
            "0",
            "5",
            "T*1000000000",
            "-T",
            "max(T,T*T)",
            "T+1000000000",
            "max(0,T-9)/2",
        )
        return lengths[int(rng.integers(len(lengths)))]
    choices = (*INTEGERS, *TEXTS, None, True, [], {}, 0.5, [1, 2])
    return choices[int(rng.integers(len(choices)))]


def _change_words(container: Container, words: Any, rng: Random) -> None:
    """Fields of rows: off by a little, other memories, special numbers, those of other rows."""
    for _ in range(int(rng.integers(1, 4))):
        index = int(rng.integers(len(words)))
        choice = int(rng.integers(5))
        if choice == 0:
            words[index] += int(rng.choice([-64, -16, -4, -1, 1, 4, 16, 64, 4096]))
        elif choice == 1:
            region = int(rng.choice([int(code) for code in Region]))
            words[index] = region << 48 | int(rng.integers(0, 1 << int(rng.integers(4, 20)))) // 4 * 4
        elif choice == 2:
            words[index] = INTEGERS[int(rng.integers(len(INTEGERS)))]
        elif choice == 3:
            words[index] = words[int(rng.integers(len(words)))]
        else:
            words[index] = np.array([FLOATS[int(rng.integers(len(FLOATS)))]]).view(np.int64)[0]


def _change_bytes(data: Any, rng: Random) -> None:
    """Words of a section: tables of offsets and first states among them."""
    words = data[: len(data) // 8 * 8].view(np.int64)
    for _ in range(int(rng.integers(1, 6)) if len(words) else 0):
        words[int(rng.integers(len(words)))] = INTEGERS[int(rng.integers(len(INTEGERS)))]
