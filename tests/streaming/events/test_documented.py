"""docs/events.md describes every detector, parameter and suffix."""

import inspect
import re
from pathlib import Path

import pytest

from streaming.events import Argmax, Ctc, Segments, Triggers
from streaming.events.choice import DETECTORS
from streaming.events.event_formats import FORMATS

TEXT = (Path(__file__).parents[3] / "docs" / "events.md").read_text("utf-8")
SECTIONS = {Segments: "Segments", Triggers: "Triggers", Ctc: "Text", Argmax: "Classes"}


@pytest.mark.parametrize("kind", SECTIONS)
def test_the_page_has_every_parameter(kind: type) -> None:
    section = TEXT.split(f"## {SECTIONS[kind]}\n")[1].split("\n## ")[0]
    table = list(re.findall(r"^\| `(\w+)` \|", section, re.M))
    assert table == [name for name in inspect.signature(kind).parameters if name != "clock"]


def test_kinds_and_suffixes_are_documented() -> None:
    assert all(f"--events {kind}" in TEXT or f"Segments.{kind}(" in TEXT for kind in DETECTORS)
    assert all(f"`.{suffix}`" in TEXT for suffix in FORMATS)
