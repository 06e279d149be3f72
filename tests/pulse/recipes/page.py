"""The recipes of docs/recipes.md, by the names in their first lines."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "recipes.md"


def recipes() -> dict[str, str]:
    """Name of the file -> text."""
    blocks = re.findall(r"```toml\n(# (\S+\.toml)\n.*?)```", PAGE.read_text(), re.DOTALL)
    return {name: text for text, name in blocks}
