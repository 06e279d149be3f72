"""Where the time of a step goes, for reading and as JSON."""

from typing import TYPE_CHECKING, Any

from streaming.cli.console import duration, print_table, size, stdout

if TYPE_CHECKING:
    from pulse.program.profile import Profile, ProfileRow

RATES = ("a step", "share", "weights", "state", "scratch", "multiply-adds", "GB/s", "GMAC/s")
RIGHT = range(len(RATES))


def as_dict(profile: "Profile") -> dict[str, Any]:
    """All of it: instructions, ops and nodes with the dearest first, the step, and what profiling itself costs."""
    return {
        "profile": [
            {"node": row.node, "op": row.op, "kernel": row.kernel, **_numbers(row)}
            for row in sorted(profile.rows, key=lambda row: -row.seconds_per_step)
        ],
        "profile_ops": [
            {"op": row.op, "instructions": row.instructions, **_numbers(row)} for row in profile.by("op")
        ],
        "profile_nodes": [
            {"node": row.node, "op": row.op, "instructions": row.instructions, **_numbers(row)}
            for row in profile.by("node")
        ],
        "profile_step": {
            "steps": profile.steps,
            "us_per_step": profile.step_s * 1e6,
            "us_of_reading_the_clock": profile.overhead_s * 1e6,
        },
    }


def _numbers(row: "ProfileRow") -> dict[str, Any]:
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


def print_profile(profile: "Profile", every: bool) -> None:
    """The ops; where ``every`` is wanted, the nodes and all instructions too."""
    stdout().print(
        f"\na step of the machine: {duration(profile.step_s)}. Reading the clock adds "
        f"{duration(profile.overhead_s)} to it, which the times below do not include",
        style="dim",
    )
    ops = [[row.op, str(row.instructions), *_cells(row)] for row in profile.by("op")]
    print_table("\nops", ("op", "rows", *RATES), ops, right=[1, *(2 + at for at in RIGHT)])
    if not every:
        stdout().print("\nnodes and instructions: --profile", style="dim")
        return
    nodes = [[row.node, str(row.instructions), *_cells(row)] for row in profile.by("node")]
    print_table("\nnodes", ("node", "rows", *RATES), nodes, right=[1, *(2 + at for at in RIGHT)])
    rows = sorted(profile.rows, key=lambda row: -row.seconds_per_step)
    instructions = [[row.node, row.op, row.kernel, *_cells(row)] for row in rows]
    columns = ("node", "op", "kernel", *RATES)
    print_table("\ninstructions", columns, instructions, right=[3 + at for at in RIGHT])


def _cells(row: "ProfileRow") -> list[str]:
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
    return size(count) if count else ""
