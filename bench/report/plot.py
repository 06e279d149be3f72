"""A picture of the ratios: for each model how many times slower than this project the others are."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from bench.performance.results import Results
from bench.performance.steps import PEERS

COLOURS = {"onnxruntime": "#4477aa", "tract": "#cc6677"}
"""The colours of the bars, by runtime."""
HEIGHT = 0.38
"""The height of a bar; rows are one apart."""
GROWN_BY = {"pulse": "frames of a pulse", "lanes": "lanes", "weights": "weights"}
"""What a step grows with -> the name of the axis."""


def draw(results: Results, path: Path) -> None:
    """Draw bars on a logarithmic scale with the spread over the rounds, and the target as a mark."""
    rows = list(reversed(results.timed_rows))
    figure, axes = plt.subplots(figsize=(9, 1 + 0.45 * len(rows)))
    for side, peer in enumerate(PEERS):
        heights = [row + (0.5 - side) * HEIGHT for row in range(len(rows))]
        times = [(y, row.runtimes[peer].times) for y, row in zip(heights, rows) if peer in row.runtimes]
        medians = [ratio.median for _, ratio in times]
        spread = [
            [ratio.median - ratio.lowest for _, ratio in times],
            [ratio.highest - ratio.median for _, ratio in times],
        ]
        positions = [y for y, _ in times]
        axes.barh(positions, medians, HEIGHT, xerr=spread, color=COLOURS[peer], label=peer, capsize=2)
        target = [(y, getattr(row.target, peer)) for y, row in zip(heights, rows)]
        marks = [(value, y) for y, value in target if value is not None]
        if marks:
            axes.plot(*zip(*marks), "k|", markersize=12, label="target" if side == 0 else None)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [f"{row.title}, {row.pulse}" for row in rows])
    axes.set_xlabel("p50 of a step, as a multiple of this project's")
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_growth(results: Results, path: Path) -> None:
    """Draw the time of a call (solid) and its roofline (dashed) by pulse, lanes and weights, on logarithmic scales."""
    figure, sides = plt.subplots(1, len(GROWN_BY), figsize=(12, 3.6), sharey=True)
    for axes, (by, label) in zip(sides, GROWN_BY.items()):
        counted = by != "weights"
        for index, title in enumerate(dict.fromkeys(row.title for row in results.growth)):
            rows = [row for row in results.growth if (row.title, row.by) == (title, by)]
            positions, colour = [int(row.at) if counted else row.at for row in rows], f"C{index}"
            axes.plot(positions, [row.us for row in rows], "o-", color=colour, label=title)
            axes.plot(positions, [row.min_us for row in rows], "--", color=colour)
        if counted:
            axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel(label)
    sides[0].set_ylabel("us per call; dashed: roofline")
    sides[0].legend(loc="upper left")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
