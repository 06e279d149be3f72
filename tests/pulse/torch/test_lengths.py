"""Which lengths are tried besides the example's."""

from typing import Any

import pytest

from pulse.errors import InputError
from pulse.torch.lengths import read_lengths, variations


@pytest.mark.parametrize("frames", [2, 3, 5, 20, 100, 4096, 16000, 160000])
def test_few_lengths_are_tried_on_both_sides(frames: int) -> None:
    """Shorter ones from 2 on, longer ones up to little more than twice, none of them twice, few in all."""
    shorter, longer = ([lengths["T"] for lengths in side] for side in variations({"T": frames}, ["T"]))
    assert bool(shorter) == (frames > 2)
    assert longer
    assert all(2 <= tried < frames for tried in shorter)
    assert all(frames < tried <= 2 * frames + 4 for tried in longer)
    for tried in (shorter, longer):
        assert len(tried) == len(set(tried)) <= 40
    assert longer[0] > 2 * frames


@pytest.mark.parametrize(
    ("frames", "stride", "rest"),
    [
        (20, 4, 0),
        (20, 3, 2),
        (4096, 256, 0),
        (16000, 160, 0),
        (16000, 320, 0),
        (16240, 160, 80),
        (600, 1, 512),
        (7, 7, 0),
    ],
)
def test_strides_are_met(frames: int, stride: int, rest: int) -> None:
    """A module that takes ``rest`` frames and whole strides is met by a longer length and by a shorter one."""
    assert (frames - rest) % stride == 0
    shorter, longer = (
        [lengths["T"] for lengths in side if lengths["T"] >= rest and (lengths["T"] - rest) % stride == 0]
        for side in variations({"T": frames}, ["T"])
    )
    assert longer
    assert bool(shorter) == (frames - stride >= max(rest, 2))


def test_symbols_change_alone_or_in_proportion() -> None:
    traced = {"T": 20, "S": 5, "B": 2}
    for side in variations(traced, ["T"]):
        assert side
        assert all(lengths["S"] == 5 and lengths["B"] == 2 != lengths["T"] for lengths in side)
    for side in variations(traced, ["T", "S"]):
        assert side
        assert all(lengths["T"] == 4 * lengths["S"] >= 8 and lengths["B"] == 2 for lengths in side)
    shorter, longer = variations(traced, list(traced))
    assert shorter == []
    assert longer[0] == {"T": 60, "S": 15, "B": 6}


def test_given_lengths_are_completed_by_those_of_the_example() -> None:
    traced = {"T": 20, "S": 5}
    assert read_lengths(None, traced) is None
    assert read_lengths([{"T": 7}, {"T": 9, "S": 1}, {}], traced) == [
        {"T": 7, "S": 5},
        {"T": 9, "S": 1},
        traced,
    ]


@pytest.mark.parametrize("entry", [{"T": 9}, {"4*T": 36}, {"32*T": 288, "T": 9}])
def test_a_name_and_its_multiples_follow_a_given_one(entry: dict[str, int]) -> None:
    traced = {"32*T": 640, "T": 20, "4*T": 80, "S": 5}
    assert read_lengths([entry], traced) == [{"32*T": 288, "T": 9, "4*T": 36, "S": 5}]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            {"T": 9, "32*T": 40},
            r"lengths: 32\*T has 40 frames, but 288 if T has 9; give T alone: its multiples",
        ),
        ({"32*T": 640, "4*T": 81}, r"4\*T has 81 frames, but 80 if T has 20"),
        ({"32*T": 41}, r"32\*T has 41 frames, but 32 if T has 1"),
        ({"4*T": 3}, r"4\*T has 3 frames, but 4 if T has 1"),
    ],
)
def test_multiples_that_do_not_fit_their_name_are_refused(entry: dict[str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_lengths([entry], {"T": 20, "32*T": 640, "4*T": 80})


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ({"T": 7}, r"lengths must be a list such as \[\{\"T\": 4000\}, .*, not \{'T': 7\}"),
        ("T", "lengths must be a list"),
        ([7], r"lengths: 7 names no symbol; give one such as"),
        ([{"U": 7}], "lengths: unknown symbol 'U'; choose one of T"),
        ([{"T": 0}], "lengths: 0 frames of T; give a positive integer"),
        ([{"T": True}], "lengths: True frames of T"),
        ([{"T": 2.0}], r"lengths: 2\.0 frames of T"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(lengths: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_lengths(lengths, {"T": 20})


def test_a_multiple_alone_keeps_its_factor() -> None:
    for side in variations({"4*T": 24}, ["4*T"]):
        assert side
        assert all(lengths["4*T"] % 4 == 0 for lengths in side)
    assert read_lengths([{"T": 5}], {"4*T": 24}) == [{"4*T": 20}]
