# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Titles of pictures: wrapped to the width of the picture."""

from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from warnings import catch_warnings, filterwarnings

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

MAX_LINES = 3
"""A longer title ends with an ellipsis."""
ELLIPSIS = "…"
WIDTH_MARGIN = 1.04
"""Drawn text may be wider than measured by this factor: glyphs are placed on whole pixels."""


def fit_title(parts: Sequence[str], width_points: float, size: float, weight: str) -> str:
    """Return text in lines that are no wider than ``width_points``.

    parts  are on one line if they fit, else each begins a line; a part has at most ``MAX_LINES``, and ends with
           ``…`` if it needs more
    """
    font = _Font(size, weight, width_points)
    line_parts = [one_line(part) for part in parts]
    title_text = " ".join(line_parts)
    if font.fits(title_text):
        return title_text
    return "\n".join(line for part in line_parts for line in _cut(list(font.lines(part)), font))


def text_width_points(text: str, size: float) -> float:
    """Return the width of a line of text."""
    return _width(text, FontProperties(size=size))


def one_line(text: str) -> str:
    """Remove what no font can show: line ends, and bytes of names that are not UTF-8."""
    encoded = text.encode("utf-8", "backslashreplace").decode()
    return " ".join("".join(character if character.isprintable() else " " for character in encoded).split())


def _cut(lines: list[str], font: "_Font") -> list[str]:
    if len(lines) <= MAX_LINES:
        return lines
    last = lines[MAX_LINES - 1]
    return [*lines[: MAX_LINES - 1], last[: font.count(last, ELLIPSIS)] + ELLIPSIS]


@contextmanager
def ignore_missing_glyphs() -> Generator[None]:
    """Suppress warnings about characters that the font lacks, which are drawn as boxes."""
    with catch_warnings():
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def _width(text: str, font: FontProperties) -> float:
    with ignore_missing_glyphs():
        width, _, _ = TextToPath().get_text_width_height_descent(text, font, False)
    return float(width)


class _Font:
    """Breaks text in one font into lines."""

    def __init__(self, size: float, weight: str, width_points: float) -> None:
        self._properties = FontProperties(size=size, weight=weight)
        self._width = width_points

    def fits(self, text: str) -> bool:
        """Return whether the text fits on a line."""
        return WIDTH_MARGIN * _width(text, self._properties) <= self._width

    def count(self, text: str, end: str = "") -> int:
        """Return the number of characters of a text that fit on a line, followed by ``end``."""
        return bisect_left(range(len(text)), True, key=lambda at: not self.fits(text[: at + 1] + end))

    def lines(self, text: str) -> Iterator[str]:
        """Break text between words, and within words wider than a line."""
        line = ""
        for word in text.split():
            longer = f"{line} {word}" if line else word
            if self.fits(longer):
                line = longer
                continue
            if line:
                yield line
            line = word
            while not self.fits(line):
                length = max(1, self.count(line))
                yield line[:length]
                line = line[length:]
        if line:
            yield line
