"""Files that appear only when they are complete."""

import secrets
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from stat import S_IMODE

from pulse.errors import InputError, file_errors


def refuse_same(inputs: Sequence[Path | None], outputs: Sequence[Path | None]) -> None:
    """Raise InputError if an output is one of the inputs, or two outputs are the same file; None for no file."""
    files = [path for path in outputs if path is not None]
    for index, path in enumerate(files):
        if any(_is_same(path, other) for other in inputs if other is not None):
            raise InputError(f"{path}: is the input; write to another file")
        if any(_is_same(path, other) for other in files[:index]):
            raise InputError(f"{path}: would be written twice; give each its own file")


def _is_same(first: Path, second: Path) -> bool:
    if first.exists() and second.exists():
        return first.samefile(second)
    return first.resolve() == second.resolve()


def kind_of(path: Path) -> str:
    """Return the kind of a wrong path, for messages: its suffix, a folder, or ``this``."""
    return "a folder" if path.is_dir() else path.suffix or "this"


def require_replaceable(path: Path) -> None:
    """Raise InputError if a path exists and is not a file, such as a folder, a device or a pipe, or a link to one."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a file that can be replaced; give the name of a file")


def _link_target(path: Path) -> Path:
    """Return the file that a symbolic link is for, or else the path itself."""
    return path.resolve() if path.is_symlink() else path


def create_temporary_file(path: Path) -> Path:
    """Create an empty file in the folder of ``path`` to write to first, with the permissions of the file it replaces.

    A symbolic link stands for its file. Raises InputError: the folder cannot be written to, or ``path`` is a folder, a
    device or a pipe.
    """
    require_replaceable(path)
    target = _link_target(path)
    part = target.with_name(f".{target.stem}-{secrets.token_hex(8)}{target.suffix}")
    with file_errors(path, "written", InputError, "check the folder"):
        part.touch(exist_ok=False)
        if target.exists():
            part.chmod(S_IMODE(target.stat().st_mode))
    return part


@contextmanager
def scratch_file(path: Path) -> Generator[Path]:
    """Create a file as ``create_temporary_file`` does, for data that is written in one go; ``publish`` it in the block.

    At the end of the block it is removed if it was not published. For a file that grows: ``PartialFile``.
    """
    part = create_temporary_file(path)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def complete_file(path: Path) -> Generator[Path]:
    """Yield a file to write to, which becomes ``path`` at the end of the block, if that raises nothing.

    Raises InputError: the file cannot be written or renamed
    """
    with scratch_file(path) as part:
        try:
            yield part
        except OSError as error:
            raise write_error(path, error.strerror or str(error)) from error
        publish(part, path)


@contextmanager
def complete_folder(path: Path, makes_parents: bool = False) -> Generator[Path]:
    """Yield the path of a folder to create, which becomes ``path`` at the end of the block, if that raises nothing.

    Raises InputError: the folder around it cannot be written to
    """
    with file_errors(path, "written", InputError, "check the folder"):
        if makes_parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp("", f".{path.stem}-", path.parent))
    try:
        yield folder / "part"
        (folder / "part").rename(path)
    finally:
        shutil.rmtree(folder)


def unused_name(path: Path, word: str) -> Path:
    """Return an unused name in the folder of ``path``, which contains ``word``."""
    candidate = path.with_stem(f"{path.stem}-{word}")
    for suffix in count(2):
        if not candidate.exists():
            break
        candidate = path.with_stem(f"{path.stem}-{word}-{suffix}")
    return candidate


def write_error(path: Path, reason: str | None) -> InputError:
    """Return the error for a file that cannot be written, such as on a full disk."""
    return InputError(f"{path}: cannot be written ({reason}); free some space, or write to another disk")


def publish(part: Path, path: Path) -> None:
    """Rename a complete file to its final name. Raises InputError: it cannot be renamed."""
    try:
        part.replace(_link_target(path))
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
