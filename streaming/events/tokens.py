"""Tokens: the texts of the classes of a speech recogniser, and how they are joined."""

import re
from collections.abc import Sequence
from pathlib import Path

from pulse.errors import InputError

BOUNDARY = "\u2581"
"""SentencePiece's character for a space."""
SPACES = ("<space>", "|", " ", "")
BLANKS = ("<blk>", "<blank>", "<pad>", "<eps>", "[PAD]")
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


def read_tokens(path: str | Path) -> tuple[str, ...]:
    """Read the texts of a file of lines ``token id``, in the order of their numbers.

    Raises InputError: the file cannot be read, or a line is not a token and its number
    """
    path = Path(path)
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(
            f"{path}: cannot be read as tokens ({reason}); give a text file with a token and its number on each line"
        ) from error
    tokens: dict[int, str] = {}
    for line_number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match = re.fullmatch(r"(.*?)[ \t](\d{1,9})\s*", line)
        if match is None:
            raise InputError(
                f"{path}, line {line_number}: must be a token, a space and its number, as in tokens.txt"
            )
        text, token = match[1], int(match[2])
        if token in tokens:
            raise InputError(f"{path}, line {line_number}: number {token} occurs twice")
        tokens[token] = text
    missing = next((token for token in range(len(tokens)) if token not in tokens), None)
    if missing is not None or not tokens:
        raise InputError(
            f"{path}: number {missing or 0} is missing; token numbers start at 0 and have no gaps"
        )
    return tuple(tokens[token] for token in range(len(tokens)))


def find_blank(tokens: Sequence[str]) -> int:
    """Return the number of the blank: the first usual name among the tokens, else 0."""
    return next((tokens.index(name) for name in BLANKS if name in tokens), 0)


def begins_word(text: str) -> bool:
    """Return whether a token begins with a space."""
    return text in SPACES or text.startswith(BOUNDARY)


def join_tokens(texts: Sequence[str]) -> str:
    """Join tokens to text. Bytes, written <0xE4>, are decoded together; invalid UTF-8 becomes U+FFFD."""
    data = b"".join(_bytes(text) for text in texts)
    return " ".join(data.decode("utf-8", "replace").replace(BOUNDARY, " ").split())


def _bytes(text: str) -> bytes:
    byte = _BYTE.fullmatch(text)
    if byte is not None:
        return bytes.fromhex(byte[1])
    return b" " if text in SPACES else text.encode()
