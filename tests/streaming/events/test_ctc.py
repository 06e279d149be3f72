"""The detector ``Ctc`` in any blocks, against its definition over the whole sequence; token files."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from streaming.events import Ctc
from streaming.events.tokens import read_tokens
from tests.failed_cases import in_one_test
from tests.streaming.events.blocks import blocks, whole

HZ = 25
TOKENS = ("<blk>", "\u2581the", "\u2581c", "at", "\u2581", "s")


def logits(rng: Any, best: Array) -> Array:
    """Values for which these classes are the best."""
    values = rng.normal(0, 1, (len(best), len(TOKENS)))
    values[np.arange(len(best)), best] = values.max(axis=1) + rng.uniform(0.1, 3, len(best))
    return values


def tokens_of(best: Array) -> list[tuple[int, int, int]]:
    """Greedy decoding by its definition: class, first frame, frame after the last."""
    tokens, frame = [], 0
    for number, group in itertools.groupby(best):
        size = len(list(group))
        if number:
            tokens.append((number, frame, frame + size))
        frame += size
    return tokens


def texts_by_definition(best: Array, unit: str, pause: int | None) -> list[tuple[str, float, float]]:
    """The texts of the best classes, with their first and last frames."""
    units = []
    for token in tokens_of(best):
        text = TOKENS[token[0]]
        new = unit == "token" or (unit == "word" and text.startswith("\u2581"))
        waited = pause is not None and units and token[1] - units[-1][-1][2] >= pause
        if new or waited or not units:
            units.append([])
        units[-1].append(token)
    texts = []
    for unit in units:
        text = " ".join("".join(TOKENS[number] for number, *_ in unit).replace("\u2581", " ").split())
        spoken = [token for token in unit if TOKENS[token[0]] != "\u2581"]
        if text:
            texts.append((text, spoken[0][1] / HZ, spoken[-1][2] / HZ))
    return texts


@pytest.mark.parametrize("unit", ["token", "word", "phrase"])
@in_one_test("seed", range(40))
def test_ctc_decodes_texts_in_any_blocks(seed: int, unit: str) -> None:
    rng = np.random.default_rng(seed)
    best = np.repeat(rng.integers(0, len(TOKENS), 60), rng.integers(1, 5, 60))
    best[rng.random(len(best)) < 0.3] = 0
    pause = int(rng.integers(1, 9)) if unit == "phrase" or rng.integers(2) else None
    values = logits(rng, best)
    detector = Ctc(HZ, TOKENS, unit, pause_s=pause and pause / HZ)
    events = whole(detector, values)
    assert [(event.label, event.start_s, event.end_s) for event in events] == texts_by_definition(
        best, unit, pause
    )
    assert blocks(detector, values, seed) == events
    assert all(event.end_s <= event.known_s and 0 < event.score <= 1 for event in events)


@pytest.mark.parametrize(
    ("values", "transform"),
    [("probabilities", lambda p: p), ("logits", np.log), ("logits", lambda p: np.log(p) + 5)],
    ids=["probabilities", "logits", "logits with an offset"],
)
def test_words_have_times_and_scores(values: str, transform: Callable[[np.ndarray], np.ndarray]) -> None:
    best = [0, 1, 1, 0, 2, 3, 3, 5, 0, 0, 1, 0]
    p = np.full((12, 6), 0.04)
    p[np.arange(12), best] = 0.8
    events = whole(Ctc(HZ, TOKENS, values=values), transform(p))
    assert [(event.label, event.start_s, event.end_s, event.known_s) for event in events] == [
        ("the", 0.04, 0.12, 0.2),
        ("cats", 0.16, 0.32, 0.44),
        ("the", 0.4, 0.44, 0.48),
    ]
    assert [event.score for event in events] == pytest.approx([0.8] * 3)


def test_minus_infinity_is_probability_zero() -> None:
    values = np.full((3, 6), -np.inf)
    values[1, 1] = 0
    (event,) = whole(Ctc(HZ, TOKENS), values)
    assert (event.label, event.start_s, event.score) == ("the", 0.04, 1)
    with pytest.raises(InputError, match="inf is not a probability"):
        Ctc(HZ, TOKENS).push(-values)


def test_characters_and_bytes_are_joined_to_words() -> None:
    letters = ("<pad>", "|", "H", "I", "<0xC3>", "<0xA4>")
    best = [1, 2, 3, 3, 1, 1, 4, 5]
    assert [event.label for event in whole(Ctc(HZ, letters), np.eye(6)[best])] == ["HI", "\u00e4"]


def test_files_of_tokens_are_read(tmp_path: Path) -> None:
    path = tmp_path / "tokens.txt"
    path.write_text("<blk> 0\n\u2581the 1\nx y\t3\n  2\n\n", "utf-8")
    assert read_tokens(path) == ("<blk>", "\u2581the", " ", "x y")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a", "line 1: must be a token, a space and its number"),
        (b"a 0\nb 0\n", "line 2: number 0 occurs twice"),
        (b"a 0\nb 2\n", "number 1 is missing; token numbers start at 0 and have no gaps"),
        (b"", "number 0 is missing"),
        (b"\xff 0", r"cannot be read as tokens \(it is not UTF-8 text\)"),
    ],
    ids=["no number", "a number twice", "a gap", "empty", "not UTF-8"],
)
def test_bad_files_of_tokens_are_refused_by_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "tokens.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        Ctc(HZ, path)


def test_a_missing_file_of_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.txt: cannot be read as tokens \(No such file or directory\)"):
        Ctc(HZ, tmp_path / "none.txt")


def test_ctc_refuses_bad_parameters() -> None:
    with pytest.raises(InputError, match=r"^unit=line: must be token or word or phrase$"):
        Ctc(HZ, TOKENS, "line")
    with pytest.raises(InputError, match=r"^blank=6: the output has 6 classes, counted from 0$"):
        Ctc(HZ, TOKENS, blank=6)
    with pytest.raises(InputError, match=r"^6 tokens for 5 classes; give the file of this model$"):
        Ctc(HZ, TOKENS).push(np.zeros((1, 5)))
