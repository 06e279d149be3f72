"""What ``pulse run --live`` tells at its end, and ``pulse report`` of a file of statistics."""

from typing import TYPE_CHECKING

from streaming.cli.console import duration, print_table

if TYPE_CHECKING:
    from streaming.latency import LatencySummary
    from streaming.stats.report import Moment
    from streaming.stats.setup import Setup
    from streaming.stats.statistics import Delay, LiveStatistics, StatisticsSummary

TIMES = {
    "total": "arrival -> output ready",
    "waiting": "arrival -> start of computing",
    "compute": "start -> end of computing",
    "callback": "inside of a callback",
    "interval": "callback -> callback",
}
PERCENTILES = ("p50", "p90", "p99", "p99.9", "max")
ENGINES = {
    "callback": "in the callback of the device",
    "worker": "a native thread",
    "python": "a callback in Python",
}
BAR = 30


def final_report(statistics: "LiveStatistics", setup: "Setup") -> list[tuple[str, str]]:
    """Names and values of a run that has ended."""
    return summary_pairs(setup, statistics.summary())


def summary_pairs(setup: "Setup", statistics: "StatisticsSummary") -> list[tuple[str, str]]:
    """A run in words: what it was, how late it was, and where something went wrong, why and what to do."""
    from streaming.stats.problems import find_problems

    counters, total = statistics.counters, statistics.total
    pairs = setup_pairs(setup)
    pairs.append(
        (
            "ran",
            f"{span(statistics.elapsed_s)}, {counters.pulses:,} pulses in {counters.callbacks:,} callbacks",
        )
    )
    pairs.append(("frames", f"{counters.frames_in:,} in, {counters.frames_out:,} out"))
    if total.count:
        pairs.append(("latency", f"{times(total)}, from arrival until the output is ready"))
        pairs.append(("computing", times(statistics.compute)))
    missed = f"missed by {counters.missed:,} of {counters.pulses:,} pulses"
    pairs.append(("deadline", f"{duration(setup.deadline_s)}, {missed}"))
    pairs.append(("delay", delay_text(statistics.delay)))
    found = find_problems(setup, statistics)
    pairs += [(trouble.name, str(trouble)) for trouble in found]
    if not found:
        pairs.append(("", "nothing was late, lost or silent, and the audio system reports no xrun"))
    told = {str(setting) for setting in setup.realtime_settings}
    return pairs + [("note", note) for note in statistics.notes if note not in told]


def setup_pairs(setup: "Setup") -> list[tuple[str, str]]:
    """What a run was started with."""
    pulse = f"{setup.pulse_frames} frames = {duration(setup.pulse_s)} at {setup.rate_hz} Hz"
    streams = "1 stream" if setup.streams == 1 else f"{setup.streams} streams"
    block = f"blocks of {setup.block_frames} = {duration(setup.block_s)}"
    if not setup.block_frames:
        block = "blocks as the device likes"
    pairs = [
        ("model", f"{setup.model}, {setup.backend} {setup.weights}"),
        ("pulse", pulse),
        ("devices", f"{setup.input or 'none'} -> {setup.output or 'none'}"),
        ("", f"{setup.device_rate_hz} Hz, {block}, {setup.channels}: {streams}"),
        ("engine", f"{ENGINES.get(setup.engine, setup.engine)}, policy {setup.policy}"),
    ]
    return pairs + [
        ("" if place else "realtime", str(one)) for place, one in enumerate(setup.realtime_settings)
    ]


def delay_text(delay: "Delay") -> str:
    """The end-to-end latency, stage by stage; those that cost nothing are left out."""
    stages = " + ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in delay.stages if seconds)
    return f"{1e3 * delay.total_s:.1f} ms end to end" + (f" = {stages}" if stages else "")


def times(latency: "LatencySummary") -> str:
    """The percentiles in one line."""
    return ", ".join(f"{name} {text}" for name, text in zip(PERCENTILES, _percentiles(latency)))


def _percentiles(latency: "LatencySummary") -> list[str]:
    found = latency.p50_us, latency.p90_us, latency.p99_us, latency.p999_us, latency.max_us
    return [duration(us / 1e6) for us in found]


def span(seconds: float) -> str:
    """A time of a clock: 12.3 s, 4:05, 1:02:03."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def print_times(statistics: "StatisticsSummary") -> None:
    """A table of all times that are measured."""
    rows: list[list[str]] = []
    for name, words in TIMES.items():
        latency: LatencySummary = getattr(statistics, name)
        cells = _percentiles(latency) if latency.count else [""] * len(PERCENTILES)
        rows.append([name, words, *cells, f"{latency.count:,}"])
    print_table("\ntimes", ("", "", *PERCENTILES, "count"), rows, right=range(2, 8))


def print_delay(delay: "Delay") -> None:
    """The end-to-end latency as a table with bars."""
    total_s = delay.total_s
    rows = [
        [name, f"{1e3 * seconds:.2f} ms", "█" * round(BAR * seconds / total_s) if total_s else ""]
        for name, seconds in delay.stages
    ]
    rows.append(
        ["all", f"{1e3 * total_s:.2f} ms", f"{delay.frames:,} frames of the device without the device's own"]
    )
    print_table("\nend-to-end latency", ("", "", ""), rows, right=[1])


def print_worst(moments: "list[Moment]") -> None:
    """The worst moments, when they were and what happened."""
    from streaming.stats.problems import describe_counters

    rows = [
        [
            f"{moment.clock:%Y-%m-%d %H:%M:%S}",
            span(moment.at_s),
            duration(moment.p99_us / 1e6),
            duration(moment.longest_us / 1e6),
            "; ".join(filter(None, [describe_counters(moment.new), *moment.events])),
        ]
        for moment in moments
    ]
    print_table("\nworst moments", ("clock", "after", "p99", "max", "what happened"), rows, right=[1, 2, 3])
