"""Pictures of TensorFlow's graphs: groups, cylinders, dashed edges, tooltips; valid for Graphviz."""

import re
from pathlib import Path

import pulse
from pulse.text.dump import dot
from tests.pulse.tensorflow.loops import lowered_loop
from tests.pulse.tensorflow.saved import stateful

STRING = r'"(?:[^"\\\n]|\\.)*"'
BOX = rf"\w+ \[label={STRING}(?:, shape=\w+)?(?:, tooltip={STRING})?\];"
ARROW = rf"\w+ -> \w+(?: \[(?:label={STRING})?(?:, )?(?:style=dashed)?\])?;"
LINE = re.compile(rf" +(?:{BOX}|{ARROW}|node \[shape=box\];|subgraph cluster_\d+ {{|label={STRING};|}})")


def lines_of(picture: str) -> list[str]:
    """The lines of a picture, each proven to be a statement, braces closed."""
    first, *lines, last = picture.splitlines()
    assert re.fullmatch(rf"digraph {STRING} {{", first)
    assert last == "}"
    for line in lines:
        assert LINE.fullmatch(line), line
    assert picture.count("{\n") == len([line for line in picture.splitlines() if line.endswith("}")])
    return lines


def test_variables_are_cylinders_and_control_edges_dashed(tmp_path: Path) -> None:
    lines = lines_of(pulse.load(stateful(tmp_path / "model")).model.dot())
    assert sum("shape=cylinder" in line for line in lines) == 2
    assert sum("style=dashed" in line for line in lines) >= 2
    assert any('label="call/xw\\nMatMul", tooltip="T=float32"' in line for line in lines)
    assert any(line.endswith('[label="1,4,f32"];') for line in lines)
    assert '    label="call";' in lines


def test_scopes_are_groups_at_every_stage() -> None:
    typed = pulse.load(lowered_loop().data).model.analyse()
    assert lines_of(dot(typed.graph))
    model = pulse.load(lowered_loop().data).model
    assert len([line for line in lines_of(model.dot()) if "While" in line]) == 1
