"""A stream's key belongs to one worker; only the streams of a worker that is lost move."""

from collections import Counter

import pytest

from streaming.fleet.rendezvous import ranking, share_of
from streaming.fleet.stream_name import StreamName
from streaming.protocol.errors import ProtocolError

KEYS = [f"{number:032x}" for number in range(4000)]
NAMES = [f"w{number}" for number in range(8)]


def best(names: list[str]) -> dict[str, str]:
    return {key: ranking(key, names)[0] for key in KEYS}


def test_the_order_of_the_names_does_not_matter() -> None:
    assert ranking("key", NAMES) == ranking("key", reversed(NAMES))
    assert sorted(ranking("key", NAMES)) == NAMES
    assert ranking("key", []) == []


def test_the_hash_is_the_same_in_each_process_and_version() -> None:
    assert ranking("0" * 32, ["c", "b", "a"]) == ["a", "b", "c"]


def test_keys_are_spread() -> None:
    counts = Counter(best(NAMES).values())
    expected = len(KEYS) / len(NAMES)
    assert set(counts) == set(NAMES)
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())


def test_only_keys_of_a_lost_name_move_each_to_its_second() -> None:
    before, after = best(NAMES), best(NAMES[1:])
    for key in KEYS:
        assert after[key] == (ranking(key, NAMES)[1] if before[key] == NAMES[0] else before[key])


def test_a_new_name_only_takes() -> None:
    before, after = best(NAMES[1:]), best(NAMES)
    assert all(after[key] in (before[key], NAMES[0]) for key in KEYS)


def test_shares_are_uniform() -> None:
    parts = [share_of(key) for key in KEYS]
    assert min(parts) >= 0
    assert max(parts) < 1
    assert abs(sum(part < 0.1 for part in parts) / len(parts) - 0.1) < 0.02


def test_names_of_streams_are_unique_and_parsed() -> None:
    name = StreamName.new("v-2")
    assert StreamName.of_text(str(name)) == name
    assert StreamName.new("v-2") != name


@pytest.mark.parametrize(
    "form",
    ["", "{name.key}", "{name.key}.", "{name.key}.a.b", "../{name}", "{name}\n", "0" * 33 + ".a"],
)
def test_texts_that_name_no_stream_are_refused(form: str) -> None:
    with pytest.raises(ProtocolError, match="no stream"):
        StreamName.of_text(form.format(name=StreamName.new("v-2")))
