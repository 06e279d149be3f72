"""ARCHITECTURE.md has a row for each package."""

from tests.documents.pages import pages
from tests.sources import ROOT


def test_every_package_has_a_row() -> None:
    rows = [line for line in pages()["ARCHITECTURE.md"].text.splitlines() if line.startswith("| `")]
    named = " ".join(line.split("|")[1] for line in rows)
    folders = [
        f"{top}/{file.parent.name}/"
        for top in ("pulse", "streaming")
        for file in (ROOT / top).glob("*/__init__.py")
    ]
    assert len(folders) > 30
    assert [folder for folder in sorted(folders) if f"`{folder}" not in named] == []
