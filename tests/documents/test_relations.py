"""docs/extend.md describes every relation, with the names of its fields."""

import re
from dataclasses import fields
from typing import get_args

import pytest

from pulse.ops.op import Relation
from tests.documents.pages import pages

RELATIONS: tuple[type, ...] = get_args(Relation)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_table_of_relations_names_their_fields(relation: type) -> None:
    (row,) = re.findall(
        rf"^\| `{relation.__name__}\((.*)\)` \|", pages()["docs/extend.md"].text, re.MULTILINE
    )
    named_fields = re.findall(r"\w+", row.replace("op=…", "op"))
    assert set(named_fields) <= {field.name for field in fields(relation)}
