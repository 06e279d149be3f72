"""Plugins: packages found by their entry points and imported when needed."""

from functools import cache
from typing import TYPE_CHECKING

from pulse.errors import LoadError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def load_plugins(group: str) -> tuple[str, ...]:
    """Import the entry points of a group, once per process, and return their names.

    Raises LoadError: one cannot be imported
    """
    from importlib.metadata import entry_points

    entries = sorted(entry_points(group=group), key=lambda entry: entry.name)
    for entry in entries:
        try:
            entry.load()
        except Exception as error:
            raise LoadError(
                f"the plugin {_entry_text(entry)} cannot be imported ({type(error).__name__}: {error}); "
                "repair or uninstall it"
            ) from error
    return tuple(entry.name for entry in entries)


def _entry_text(entry: "EntryPoint") -> str:
    package = f" of {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""
    return f"{entry.name} = {entry.value}{package}"
