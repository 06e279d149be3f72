"""The drawing of the layers in ARCHITECTURE.md."""

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from docs.tables.layer_list import LAYERS, ROOT, layer_of, modules

DOCUMENT = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- layers: python -m docs.tables layers -->\n```\n", "```\n<!-- end of layers -->\n"
WIDTH = 80


def draw_layers(text: str) -> str:
    """Return the document with the current drawing."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    assert after, f"ARCHITECTURE.md needs the lines {BEGIN!r} and {END!r}"
    return before + BEGIN + "".join(f"{line}\n" for line in _lines()) + END + after


def _lines() -> Iterator[str]:
    """Yield each layer, its contents and number of modules, the highest first; rules separate the packages."""
    sizes = Counter(layer_of(name) for name in modules())
    edge = f"├{'─' * 11}┼{'─' * (WIDTH + 2)}┼{'─' * 5}┤"
    yield f"┌{'─' * 11}┬{'─' * (WIDTH + 2)}┬{'─' * 5}┐"
    above = ""
    for layer in reversed(LAYERS):
        text, indent = LAYERS[layer], " " * (LAYERS[layer].index(":") + 2)
        if above not in ("", indent):
            yield edge
        above = indent
        for number, line in enumerate(wrap(text, WIDTH, subsequent_indent=indent)):
            name, size = ("", "") if number else (layer, str(sizes[layer]))
            yield f"│ {name:<9} │ {line:<{WIDTH}} │ {size:>3} │"
    yield f"└{'─' * 11}┴{'─' * (WIDTH + 2)}┴{'─' * 5}┘"
