"""Settings of the documentation site: ``python -m sphinx -W -c docs/site . build/site`` builds it."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from pulse.version import __version__  # noqa: E402

project = "pulse"
version = release = __version__
copyright = "the authors of pulse, MIT licence"

extensions = ["myst_parser", "sphinx.ext.autodoc", "docstrings", "gallery"]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/api/*.md",
    "docs/decisions/*.md",
    *("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"),
    *("bench/README.md", "demos/README.md", "demos/*/README.md"),
]
exclude_patterns = [".*", "build", "dist", "tests", "pulse", "streaming", "**/__pycache__"]

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
add_module_names = False
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "pulse"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["root"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "default"
pygments_dark_style = "github-dark"

DECISIONS = """
```{toctree}
:hidden:
:glob:

0*
```
"""


def list_decisions(_app: Sphinx, page: str, source: list[str]) -> None:
    """Add the decisions to the navigation, below their table."""
    if page == "docs/decisions/README":
        source[0] += DECISIONS


def setup(app: Sphinx) -> None:
    """Register the settings; Sphinx calls it."""
    app.connect("source-read", list_decisions)
