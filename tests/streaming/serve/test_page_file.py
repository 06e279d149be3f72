"""The page as files: nothing is from elsewhere, and the elements that its scripts look for exist. Slow tests run it."""

import re

from tests.documents.tags import tags_of
from tests.sources import ROOT

PAGE = ROOT / "streaming" / "serve" / "page" / "index.html"
FILES = {path.name: path.read_text("utf-8") for path in sorted(PAGE.parent.iterdir())}
TEXT = "\n".join(text for name, text in FILES.items() if name != "client.js")
ELEMENTS = tags_of(FILES["index.html"])
IMPORT = re.compile(r'from "\./([\w.]+)"|new URL\("([\w-]+\.js)", base\)')
NAMESPACE = "http://www.w3.org/2000/svg"


def test_the_page_file_loads_nothing_from_elsewhere() -> None:
    addresses = set(re.findall(r"(?:https?|wss?):?//[^\s'\"`)]+", TEXT))
    assert addresses <= {NAMESPACE}
    loaded = {values[name] for _, values in ELEMENTS for name in ("src", "href") if name in values}
    files = {address for address in loaded if not address.startswith("data:")}
    files |= {name for names in IMPORT.findall(TEXT) for name in names if name}
    assert files == set(FILES) - {"index.html"}


def test_the_page_has_the_elements_of_the_script() -> None:
    ids = [values["id"] for _, values in ELEMENTS if "id" in values]
    assert len(ids) == len(set(ids)) > 40
    wanted_ids = set(re.findall(r'\$\("([\w-]+)"\)', TEXT))
    assert len(wanted_ids) > 30
    assert wanted_ids <= set(ids)
    styles = set(re.findall(r'colourOf\("([\w-]+)"\)', TEXT))
    assert styles
    assert all(f"--{name}:" in TEXT for name in styles)


def test_controls_and_pictures_have_names() -> None:
    labelled = {values["for"] for tag, values in ELEMENTS if tag == "label" and "for" in values}
    for tag, values in ELEMENTS:
        if tag == "select" or (tag == "input" and values["type"] not in ("radio", "checkbox")):
            assert values["id"] in labelled, values
        if tag == "canvas" or values.get("role") == "meter":
            assert values["aria-label"], values
        if tag == "button":
            assert values["type"] in ("button", "submit")


def test_both_schemes_have_all_colours() -> None:
    light, dark = re.findall(r":root \{([^}]*)\}", TEXT)
    names = [set(re.findall(r"--([\w-]+):", block)) for block in (light, dark)]
    assert names[0] - names[1] == {"radius"}
    assert names[1] <= names[0]
