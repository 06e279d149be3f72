"""The documentation site builds without a warning, links have targets, and nothing is loaded from elsewhere."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.documents.tags import Tag, tags_of
from tests.sources import ROOT

SITE = ROOT / "build" / "site"
MISSING = [name for name in ("sphinx", "myst_parser", "furo", "matplotlib") if find_spec(name) is None]
LOADS = {"script": "src", "img": "src", "audio": "src", "source": "src", "iframe": "src"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "preconnect", "modulepreload", "prefetch"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING), reason=f"pip install 'pulse-stream[docs]': {', '.join(MISSING)} missing"
    ),
]


@dataclass
class SitePage:
    """An HTML page of the built site."""

    path: Path
    tags: list[Tag] = field(init=False)

    def __post_init__(self) -> None:
        self.tags = tags_of(self.path.read_text("utf-8"))

    @cached_property
    def ids(self) -> set[str]:
        """The ids that links may name after #."""
        return {attributes["id"] for _, attributes in self.tags if "id" in attributes}

    def links(self) -> Iterator[str]:
        """The targets of the page's links."""
        return (attributes["href"] for tag, attributes in self.tags if tag == "a" and "href" in attributes)

    def loads(self) -> Iterator[str]:
        """The addresses that a browser fetches when it shows the page."""
        for tag, attributes in self.tags:
            if tag == "link" and LOADED_LINKS & set(attributes.get("rel", "").split()):
                yield attributes["href"]
            elif tag in LOADS and LOADS[tag] in attributes:
                yield attributes[LOADS[tag]]


@pytest.fixture(scope="module")
def site() -> dict[Path, SitePage]:
    """The pages by their paths, just built."""
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-E",
        "-c",
        "docs/site",
        ".",
        str(SITE),
    ]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert process.returncode == 0, process.stderr
    return {path: SitePage(path) for path in sorted(SITE.rglob("*.html"))}


def target(page: SitePage, link: str) -> Path:
    """The file that a link of the page points to."""
    path = unquote(urlsplit(link).path)
    return (page.path.parent / path).resolve() if path else page.path


def test_links_of_the_site_have_targets(site: dict[Path, SitePage]) -> None:
    inside = [
        (page, link)
        for page in site.values()
        for link in (*page.links(), *page.loads())
        if not urlsplit(link).scheme
    ]
    assert len(site) > 40
    assert len(inside) > 5000
    assert not {link for page, link in inside if not target(page, link).exists()}
    anchors = [(page, link) for page, link in inside if urlsplit(link).fragment]
    assert len(anchors) > 500
    assert not {
        f"{page.path.name}: {link}"
        for page, link in anchors
        if (goal := site.get(target(page, link))) and unquote(urlsplit(link).fragment) not in goal.ids
    }


def test_the_site_loads_nothing_from_elsewhere(site: dict[Path, SitePage]) -> None:
    loaded = {link for page in site.values() for link in page.loads()}
    assert len(loaded) > 10
    assert not {link for link in loaded if urlsplit(link).scheme or urlsplit(link).netloc}
    sheets = "".join(path.read_text("utf-8") for path in SITE.rglob("*.css"))
    assert "font" in sheets
    assert "@import" not in sheets
    assert "url(http" not in sheets
    assert "url(//" not in sheets


def test_the_gallery_has_its_recordings(site: dict[Path, SitePage]) -> None:
    page = site[SITE / "docs" / "gallery.html"]
    sounds = [attributes["src"] for tag, attributes in page.tags if tag == "audio"]
    assert len(sounds) == 3
    assert all(target(page, sound).stat().st_size > 10_000 for sound in sounds)
