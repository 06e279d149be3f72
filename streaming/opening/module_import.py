"""Import of what ``package.module:name`` or ``file.py:name`` names."""

import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from difflib import get_close_matches
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path, PurePath
from traceback import extract_tb
from types import ModuleType
from typing import Any

from pulse.errors import InputError
from pulse.support.record import record

FILE_SUFFIX = ".py"
MAX_SHOWN_NAMES = 8
"""Maximum number of names of a module in a message; further ones are left out."""


@record
class ModuleName:
    """A name of something in Python.

    source     a Python module, with dots, or the path of a file
    attribute  what of it, with dots for an attribute of an attribute
    """

    source: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.source}:{self.attribute}"

    @property
    def is_file(self) -> bool:
        """Whether the source is the path of a file."""
        return self.source.endswith(FILE_SUFFIX)


def read_module_name(path: PurePath) -> ModuleName | None:
    """Parse ``package.module:name``. None for anything else: a file that exists, a path, a drive of Windows."""
    source, colon, attribute = str(path).rpartition(":")
    if not colon or f"{source}:" == path.drive or Path(path).exists():
        return None
    name = ModuleName(source, attribute)
    if not all(part.isidentifier() for part in attribute.split(".")):
        return None
    return name if name.is_file or all(part.isidentifier() for part in source.split(".")) else None


def import_named(name: ModuleName) -> Any:
    """Return the object of that name; it is looked for in the current folder first, or in the folder of the file.

    Raises InputError: there is no such module, file or attribute, or the import raises
    """
    value: Any = _import_file(name) if name.is_file else _import_module(name)
    for part in name.attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise InputError(f"{name}: {name.source} has no {part!r}; {_alternatives(value, part)}") from None
    return value


@contextmanager
def user_code(name: ModuleName, action: str) -> Generator[None]:
    """Run the user's code: its prints go to stderr. Raises InputError: it raises an error.

    action  its name in the message
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (Exception, SystemExit) as error:
        reason = next(iter(str(error).splitlines()), "")
        frame = extract_tb(error.__traceback__)[-1]
        raised = f"{type(error).__name__}{': ' if reason else ''}{reason}"
        raise InputError(
            f"{name}: {action} raises {raised} ({frame.filename}, line {frame.lineno}); run it in Python first"
        ) from error


def _import_module(name: ModuleName) -> ModuleType:
    _search_first(Path.cwd())
    with user_code(name, f"the import of {name.source}"):
        try:
            return import_module(name.source)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name.source}.".startswith(f"{error.name}."):
                raise
            missing = error.name
    raise InputError(
        f"{name}: Python finds no module {missing}, neither in {Path.cwd()} nor among its packages; give "
        "package.module:name, or file.py:name"
    )


def _import_file(name: ModuleName) -> ModuleType:
    path = Path(name.source)
    if not path.is_file():
        raise InputError(f"{name}: no such file {path}; check the path")
    _search_first(path.resolve().parent)
    spec = spec_from_file_location(f"_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{name}: {path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    with user_code(name, f"the import of {name.source}"):
        spec.loader.exec_module(module)
    return module


def _search_first(folder: Path) -> None:
    """Look for Python modules in this folder first, as ``python file.py`` does."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _alternatives(value: Any, part: str) -> str:
    public = [name for name in dir(value) if not name.startswith("_") and hasattr(value, name)]
    callables = [name for name in public if callable(getattr(value, name))]
    names = list(dict.fromkeys([*get_close_matches(part, public), *callables]))
    return f"it has {', '.join(names[:MAX_SHOWN_NAMES])}" if names else "it has no public names"
