"""The recipes of docs/recipes.md and docs/published_recipes.md, by the names in their first lines."""

import re
import tomllib
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
"""The folder of the pages."""
FORMAT, PUBLISHED = DOCS / "recipes.md", DOCS / "published_recipes.md"
"""The two pages: of the format, and of published models."""
FOLDERS = {".onnx": "models", ".ark": "sound", ".tflite": "tflite", ".pb": "tensorflow", "": "tensorflow"}
"""Where the shared material has the files that recipes name, by suffix; a SavedModel is a folder."""


def recipes() -> dict[str, str]:
    """Return the text of each recipe by file name."""
    text = FORMAT.read_text() + PUBLISHED.read_text()
    blocks = re.findall(r"```toml\n(# (\S+\.toml)\n.*?)```", text, re.DOTALL)
    return {name: text for text, name in blocks}


def lay_out_recipe(name: str, folder: Path, shared: Path) -> Path:
    """Return a recipe of the pages in a folder, with the recipes that it names, and links to other files.

    shared   the folder of published models and sound
    Raises   FileNotFoundError: it has not all of them
    """
    text = recipes()[name]
    for stage in tomllib.loads(text)["stage"]:
        for file in (stage.get("model"), stage.get("cmvn", {}).get("path")):
            if file is not None and Path(file).suffix == ".toml":
                lay_out_recipe(file, folder, shared)
            elif file is not None:
                source = shared / FOLDERS[Path(file).suffix] / file
                if not source.exists():
                    raise FileNotFoundError(source)
                (folder / file).symlink_to(source)
    path = folder / name
    path.write_text(text)
    return path
