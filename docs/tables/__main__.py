"""Write every table, or the named ones: ``python -m docs.tables [node_cases …]``."""

import sys

from docs.tables import layers
from docs.tables.documents import DOCUMENTS, FOLDER

for name in sys.argv[1:] or [*DOCUMENTS, "layers"]:
    if name == "layers":
        layers.DOCUMENT.write_text(layers.draw_layers(layers.DOCUMENT.read_text()))
    else:
        (FOLDER / f"{name}.md").write_text(DOCUMENTS[name]())
