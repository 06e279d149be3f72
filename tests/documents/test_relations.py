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
    named_fields = [argument.partition("=")[0] for argument in row.split(", ") if argument]
    assert named_fields == [field.name for field in fields(relation)]
