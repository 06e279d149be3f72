"""Reports: one set of sections as text and as Markdown, one set of values as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from pulse.support.report import (
    Pairs,
    Report,
    Section,
    Table,
    Text,
    byte_size,
    duration,
    json_text,
    json_value,
    parse_json,
)


@dataclass(frozen=True)
class Inner:
    largest: float
    path: Path


@dataclass(frozen=True)
class Example(Report):
    name: str
    inner: tuple[Inner, ...]
    at: datetime

    def sections(self) -> list[Section]:
        return [
            Pairs([("name", self.name), ("rows", "2")]),
            Table("sizes", ("op", "bytes"), [["a|b", "1"], ["c", "20"]], right=(1,)),
            Table("bars", ("", ""), [["x", "##"]]),
            Text("all\nis well", "bold green"),
        ]


class Counts(Report):
    def values(self) -> Mapping[str, Any]:
        return {"counts": {1: range(2)}, "inner": Inner(-inf, Path("b"))}


EXAMPLE = Example("n", (Inner(nan, Path("a")),), datetime(2026, 1, 2, tzinfo=UTC))


def test_a_report_is_written_as_text() -> None:
    assert str(EXAMPLE) == (
        "name  n\nrows  2\n\nsizes\nop   bytes\na|b      1\nc       20\n\nbars\nx  ##\n\nall\nis well"
    )


def test_a_report_is_written_as_markdown() -> None:
    assert EXAMPLE.to_markdown() == (
        "|  |  |\n| --- | --- |\n| name | n |\n| rows | 2 |\n\n"
        "## sizes\n\n| op | bytes |\n| --- | --: |\n| a\\|b | 1 |\n| c | 20 |\n\n"
        "## bars\n\n|  |  |\n| --- | --- |\n| x | \\#\\# |\n\n"
        "all\nis well\n"
    )


def test_values_are_the_fields_unless_a_report_overrides_them() -> None:
    assert EXAMPLE.as_dict() == {
        "name": "n",
        "inner": [{"largest": "nan", "path": "a"}],
        "at": "2026-01-02T00:00:00+00:00",
    }
    assert Counts().as_dict() == {"counts": {"1": [0, 1]}, "inner": {"largest": "-inf", "path": "b"}}


@pytest.mark.parametrize("report", [EXAMPLE, Counts()], ids=["fields", "overridden"])
def test_json_of_a_report_has_its_values(report: Report) -> None:
    assert parse_json(json_text(report.values())) == report.as_dict()
    assert json_value({"of": [report]}) == {"of": [report.as_dict()]}


def test_empty_tables_have_a_text() -> None:
    assert Table("t", ("a", "b"), []).text() == "t\na  b"
    assert Pairs([]).text() == ""
    assert Table("t", ("",), []).text() == "t\n"
    assert json_text({}) == "{}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 us"), (45e-9, "45 ns"), (12.3e-6, "12.3 us"), (4.56e-3, "4.56 ms"), (7.891, "7.89 s")],
)
def test_durations_have_readable_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_byte_sizes_have_readable_units() -> None:
    assert [byte_size(count) for count in (0, 1023, 1 << 10, 3 << 19)] == [
        "0 B", "1023 B", "1.0 KiB", "1.5 MiB",
    ]  # fmt: skip
