"""The folders of tests and of the packages mirror each other, so that the tests of a module are found by its path."""

from collections.abc import Iterator
from pathlib import Path

from tests.sources import ROOT, modules_in, name_of

PACKAGES = ("pulse", "streaming")


def files_of_tests() -> Iterator[tuple[Path, Path]]:
    """Each file of tests of a package, and the folder of the sources that it belongs to."""
    for path in modules_in(*(f"tests/{package}" for package in PACKAGES)):
        if path.stem.startswith("test_"):
            yield path, ROOT / path.parent.relative_to(ROOT / "tests")


def module_below(folder: Path, name: str) -> Path | None:
    """A module of this name in the folder itself, else in a folder below it."""
    return next(iter(sorted(folder.rglob(f"{name}.py"), key=lambda path: (len(path.parts), path))), None)


def test_each_folder_of_tests_is_one_of_the_packages() -> None:
    folders = {folder for _, folder in files_of_tests()}
    assert len(folders) > 50
    assert not sorted(name_of(folder) for folder in folders if not folder.is_dir())


def test_each_folder_of_the_packages_has_tests() -> None:
    """Tests of a folder are in the folder of the same path or below it."""
    tested = {folder for _, source in files_of_tests() for folder in (source, *source.parents)}
    folders = {path.parent for path in modules_in(*PACKAGES)}
    assert len(folders) > 60
    assert not sorted(name_of(folder) for folder in folders - tested)


def test_tests_named_like_a_module_are_not_in_a_folder_above_it() -> None:
    places = [(path, module_below(folder, path.stem[5:])) for path, folder in files_of_tests()]
    beside = {name_of(path): name_of(module) for path, module in places if module}
    wrong = {
        path: module for path, module in beside.items() if Path("tests", module).parent != Path(path).parent
    }
    assert len(beside) > 150
    assert not wrong
