# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Titles of pictures: as wide as the picture, whatever names are in them."""

from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from warnings import catch_warnings, filterwarnings

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

MOST_LINES = 3
MORE = "…"
SPARE = 1.04
"""What is drawn may be this much wider than it was measured: glyphs are put on whole pixels."""


def fit_title(parts: Sequence[str], width_points: float, size: float, weight: str) -> str:
    """Text in lines that are no wider than ``width_points``.

    parts  stand in one line if they fit, else each begins a line; a part has ``MOST_LINES`` at most, and ends with
           ``…`` if that is too little
    """
    font = _Font(size, weight, width_points)
    plain = [one_line(part) for part in parts]
    whole = " ".join(plain)
    if font.fits(whole):
        return whole
    return "\n".join(line for part in plain for line in _cut(list(font.lines(part)), font))


def width_points(text: str, size: float) -> float:
    """The width of a line of text."""
    return _width(text, FontProperties(size=size))


def one_line(text: str) -> str:
    """Without what no font has: line ends, and bytes of names that are no UTF-8."""
    shown = text.encode("utf-8", "backslashreplace").decode()
    return " ".join("".join(each if each.isprintable() else " " for each in shown).split())


def _cut(lines: list[str], font: "_Font") -> list[str]:
    if len(lines) <= MOST_LINES:
        return lines
    last = lines[MOST_LINES - 1]
    return [*lines[: MOST_LINES - 1], last[: font.count(last, MORE)] + MORE]


@contextmanager
def without_glyphs() -> Generator[None]:
    """A font may lack a character: a box stands for it, without a warning."""
    with catch_warnings():
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def _width(text: str, font: FontProperties) -> float:
    with without_glyphs():
        width, _, _ = TextToPath().get_text_width_height_descent(text, font, False)
    return float(width)


class _Font:
    """Breaks text of one font into lines."""

    def __init__(self, size: float, weight: str, width_points: float) -> None:
        self._properties = FontProperties(size=size, weight=weight)
        self._width = width_points

    def fits(self, text: str) -> bool:
        """Whether a line holds it."""
        return SPARE * _width(text, self._properties) <= self._width

    def count(self, text: str, end: str = "") -> int:
        """How many characters of a text a line holds, with ``end`` behind them."""
        return bisect_left(range(len(text)), True, key=lambda at: not self.fits(text[: at + 1] + end))

    def lines(self, text: str) -> Iterator[str]:
        """Broken between words, and inside of those that are wider than a line."""
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
