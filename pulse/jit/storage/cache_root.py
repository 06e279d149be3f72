"""The folder of a user's caches, for modules that every start imports: ``pathlib`` takes 3 ms to import."""

import os
import sys


def cache_root() -> str:
    """Return the folder that PULSE_CACHE names, or the platform's folder for a user's caches."""
    if named := os.environ.get("PULSE_CACHE"):
        return os.path.abspath(os.path.expanduser(named))
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        root = "~/Library/Caches"
    else:
        root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return os.path.join(os.path.expanduser(root), "pulse-stream")
