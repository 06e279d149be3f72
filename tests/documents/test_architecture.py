"""ARCHITECTURE.md has a row for each package."""

from tests.documents.pages import package_rows
from tests.sources import ROOT, name_of


def test_every_package_has_a_row() -> None:
    with_row = {path.rstrip("/") for paths, _ in package_rows() for path in paths}
    folders = {
        name_of(file.parent)
        for top in ("pulse", "streaming")
        for file in (ROOT / top).glob("*/**/__init__.py")
    }
    assert len(folders) > 70
    assert sorted(folders - with_row) == []
