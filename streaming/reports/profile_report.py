"""The profile of a step as text and as JSON."""

from collections.abc import Sequence
from typing import Any

from pulse.program.native.profile import InstructionProfile, Profile
from pulse.support.report import Section, Table, Text, byte_size, duration
from pulse.support.wording import count_of, spell

RATE_COLUMNS = ("a step", "share", "weights", "state", "arena", "multiply-adds", "GB/s", "GMAC/s")


def profile_dict(profile: Profile | None) -> dict[str, Any]:
    """Return instructions, ops and nodes, most expensive first; the step, and the cost of profiling itself."""
    if profile is None:
        return {"profile": None}
    return {
        "profile": [
            {"node": row.node, "op": row.op, "kernel": row.kernel, "parts": row.parts, **_numbers(row)}
            for row in _most_expensive(profile)
        ],
        "profile_ops": [
            {"op": row.op, "instructions": row.instructions, **_numbers(row)}
            for row in profile.group_by("op")
        ],
        "profile_nodes": [
            {"node": row.node, "op": row.op, "instructions": row.instructions, **_numbers(row)}
            for row in profile.group_by("node")
        ],
        "profile_step": {
            "steps": profile.steps,
            "us_per_step": profile.step_s * 1e6,
            "us_of_reading_the_clock": profile.overhead_s * 1e6,
        },
    }


def profile_sections(profile: Profile, details: bool) -> list[Section]:
    """Return the ops; if ``details`` is set, the nodes and all instructions too."""
    part_counts = [row.parts for row in profile if row.parts > 1]
    parts = (
        f" {len(part_counts)} of {count_of(len(profile), 'instruction')} run in parts, on "
        f"{count_of(max(part_counts), 'thread')}."
        if part_counts
        else ""
    )
    step = Text(
        f"a step of the machine: {duration(profile.step_s)}.{parts} Reading the clock adds "
        f"{duration(profile.overhead_s)} to it, which the times below do not include",
        "dim",
    )
    ops = _table(
        "ops", ("op", "rows"), [((row.op, str(row.instructions)), row) for row in profile.group_by("op")]
    )
    if not details:
        return [step, ops, Text(f"nodes and instructions: {spell('profile', True)}", "dim")]
    nodes = [((row.node, str(row.instructions)), row) for row in profile.group_by("node")]
    instructions = [((row.node, row.op, _kernel(row)), row) for row in _most_expensive(profile)]
    return [
        step,
        ops,
        _table("nodes", ("node", "rows"), nodes),
        _table("instructions", ("node", "op", "kernel"), instructions),
    ]


def _most_expensive(profile: Profile) -> list[InstructionProfile]:
    return sorted(profile.rows, key=lambda row: -row.seconds_per_step)


def _kernel(row: InstructionProfile) -> str:
    return row.kernel if row.parts == 1 else f"{row.kernel} in {row.parts} parts"


def _table(
    title: str, columns: Sequence[str], rows: Sequence[tuple[Sequence[str], InstructionProfile]]
) -> Table:
    right = range(
        columns.index("rows") if "rows" in columns else len(columns), len(columns) + len(RATE_COLUMNS)
    )
    return Table(title, (*columns, *RATE_COLUMNS), [[*names, *_cells(row)] for names, row in rows], right)


def _numbers(row: InstructionProfile) -> dict[str, Any]:
    cost = row.cost
    return {
        "us_per_step": row.seconds_per_step * 1e6,
        "share": row.share,
        "weight_bytes": cost.weights,
        "state_bytes": cost.state,
        "scratch_bytes": cost.arena,
        "multiply_adds": cost.multiply_adds,
        "gigabytes_per_s": row.gigabytes_per_s,
        "giga_multiply_adds_per_s": row.giga_multiply_adds_per_s,
    }


def _cells(row: InstructionProfile) -> list[str]:
    cost = row.cost
    counts = [_size(cost.weights), _size(cost.state), _size(cost.arena)]
    counts.append(f"{cost.multiply_adds:,}" if cost.multiply_adds else "")
    rates = [row.gigabytes_per_s, row.giga_multiply_adds_per_s]
    return [
        duration(row.seconds_per_step),
        f"{row.share:.1%}",
        *counts,
        *("" if rate is None else f"{rate:.1f}" for rate in rates),
    ]


def _size(count: int) -> str:
    return byte_size(count) if count else ""
