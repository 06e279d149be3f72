"""Rendezvous hashing: which of several names a key belongs to (Thaler and Ravishankar, 1998).

Each pair of a key and a name has a score; the key belongs to the name with the highest one. If a name is lost, only its
keys move, each to the next of its own ranking; a new name takes its share from all others alike.
"""

from collections.abc import Iterable
from hashlib import blake2b

SCORE_BYTES = 8
"""The bytes of a score: ties are improbable."""


def ranking(key: str, names: Iterable[str]) -> list[str]:
    """Return the names by descending score; the key belongs to the first."""
    return sorted(names, key=lambda name: (_score(key, name), name), reverse=True)


def share_of(key: str) -> float:
    """Hash a key to a number from 0 to 1, uniform over many keys."""
    return int.from_bytes(_score("share", key), "big") / (1 << 8 * SCORE_BYTES)


def _score(key: str, name: str) -> bytes:
    return blake2b(f"{key}\n{name}".encode(), digest_size=SCORE_BYTES).digest()
