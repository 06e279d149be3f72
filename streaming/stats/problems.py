"""The problems of a live run, their causes as far as known, and remedies."""

from collections.abc import Iterator

from pulse.support.record import record
from pulse.support.wording import count_of, spell
from streaming.stats.live_statistics import Counters, StatisticsSummary
from streaming.stats.setup import Setup

COUNTERS = {
    "missed": ("late pulse", "late"),
    "frames_silent": ("silent frame", "silent"),
    "frames_lost": ("lost frame", "lost"),
    "frames_skipped": ("skipped frame", "lost"),
    "pulses_dropped": ("dropped pulse", "lost"),
    "input_underflows": ("input underflow", "xrun"),
    "input_overflows": ("input overflow", "xrun"),
    "output_underflows": ("output underflow", "xrun"),
    "output_overflows": ("output overflow", "xrun"),
    "stalls": ("stall", "device"),
    "reopened": ("reopening", "device"),
    "faults": ("model fault", "model"),
}
"""Each counter of a problem -> what it counts, and its group: the effect for a listener."""
GROUPS = tuple(dict.fromkeys(group for _, group in COUNTERS.values()))
MIN_IRREGULAR_GAP = 1.5
"""A gap between callbacks of at least this many blocks is attributed to the audio system."""


@record
class Problem:
    """A problem of a run.

    name  the name of its group
    what  how many times it occurred, and the cause if known
    help  what to do
    """

    name: str
    what: str
    help: str

    def __str__(self) -> str:
        return f"{self.what}; {self.help}"


def group_count(counters: Counters, name: str) -> int:
    """Return the sum of a group of counters. It adds frames to pulses, so it only shows whether problems occurred."""
    return sum(getattr(counters, field) for field, (_, group) in COUNTERS.items() if group == name)


def describe_counters(counters: Counters, only: str | None = None) -> str:
    """Describe all counters of problems, such as ``3 late pulses, 1 stall``; empty if there are none.

    only  describe the counters of this group
    """
    counts = [
        (getattr(counters, name), noun)
        for name, (noun, group) in COUNTERS.items()
        if only is None or group == only
    ]
    return ", ".join(count_of(count, noun, form=",") for count, noun in counts if count)


def find_problems(setup: Setup, statistics: StatisticsSummary) -> list[Problem]:
    """Return all problems, causes before their consequences; empty after a good run."""
    return list(_problems(setup, statistics))


def _problems(setup: Setup, statistics: StatisticsSummary) -> Iterator[Problem]:
    counters = statistics.counters
    if counters.missed:
        cause, advice = _lateness(setup, statistics)
        yield Problem(
            "late", f"{counters.missed:,} of {count_of(counters.pulses, 'pulse', form=',')}: {cause}", advice
        )
    if counters.frames_silent:
        ms = 1e3 * counters.frames_silent / setup.device_rate_hz
        yield Problem(
            "silent",
            f"{count_of(counters.frames_silent, 'frame', form=',')} ({ms:.1f} ms) of silence, since nothing was ready",
            f"more {spell('headroom_s')} or a larger {spell('block_frames')} gives the model more time",
        )
    if counters.frames_skipped:
        yield Problem(
            "lost",
            f"{count_of(counters.frames_skipped, 'frame', form=',')} made too late and not played, "
            "so that the delay stays as it is",
            "the same helps as against silence",
        )
    if counters.pulses_dropped:
        yield Problem(
            "lost",
            f"{count_of(counters.pulses_dropped, 'pulse', form=',')} dropped for being late (policy drop_oldest)",
            f"{spell('policy', 'wait')} plays all of them, later",
        )
    if counters.frames_lost:
        yield Problem(
            "lost",
            f"{counters.frames_lost:,} of {count_of(counters.frames_in, 'frame', form=',')} of the device did not fit "
            "into the buffer: the model stopped for longer than the buffer lasts",
            _quiet_advice(setup),
        )
    if counters.xruns:
        yield _xruns(setup, statistics)
    if counters.stalls:
        again = f", {count_of(counters.reopened, 'reopening', form=',')}" if counters.reopened else ""
        yield Problem(
            "device",
            f"{count_of(counters.stalls, 'stall', form=',')} of the device, which stopped calling{again}",
            "check its cable, its power saving and the sound server"
            + ("" if counters.reopened else f"; {spell('reconnect', 'keep')} opens it again"),
        )
    if counters.faults:
        yield _faults(counters.faults)


def _faults(count: int) -> Problem:
    return Problem(
        "model",
        f"{count_of(count, 'model fault', form=',')}, values for which a node has no result: indices outside their "
        "table, "
        "integers divided by 0, or floats that an integer cannot hold",
        "the output there is meaningless; the notes name the nodes: limit what they read (Clip, Where)",
    )


def _lateness(setup: Setup, statistics: StatisticsSummary) -> tuple[str, str]:
    """Explain why pulses are late, and what to do."""
    compute, waiting = statistics.compute, statistics.waiting
    limit_us = statistics.deadline_s * 1e6
    if compute.mean_us > setup.pulse_s * 1e6:
        return (
            f"computing takes {compute.mean_us / 1e3:.2f} ms on average for a pulse of {setup.pulse_s * 1e3:.2f} ms",
            f"a larger {spell('pulse')}, {spell('weights', 'int8')} or fewer channels, or a faster machine",
        )
    if compute.p99_us > limit_us:
        return (
            f"computing alone takes {compute.p99_us / 1e3:.2f} ms at p99",
            f"a larger {spell('pulse')} or {spell('weights', 'int8')} makes it cheaper",
        )
    if compute.max_us >= waiting.max_us:
        return f"computing was held up, for {compute.max_us / 1e3:.2f} ms at most", _quiet_advice(setup)
    return f"a pulse waited for at most {waiting.max_us / 1e3:.2f} ms until it was computed", _quiet_advice(
        setup
    )


def _xruns(setup: Setup, statistics: StatisticsSummary) -> Problem:
    flags = describe_counters(statistics.counters, "xrun")
    block_us = setup.block_s * 1e6 or statistics.interval.mean_us
    if statistics.callback.max_us > block_us:
        help = f"{spell('engine', 'worker')} computes elsewhere; a larger {spell('block_frames')} gives more time"
        longest_ms = statistics.callback.max_us / 1e3
        cause = f"the callback took at most {longest_ms:.2f} ms, a block is {block_us / 1e3:.2f} ms"
    elif statistics.interval.max_us > MIN_IRREGULAR_GAP * block_us:
        help = f"a larger {spell('block_frames')}, or less other work on this machine"
        cause = (
            f"the audio system called after at most {statistics.interval.max_us / 1e3:.2f} ms, a block is "
            f"{block_us / 1e3:.2f} ms"
        )
    else:
        help = f"a larger {spell('block_frames')} gives the audio system more time"
        cause = "callbacks were short and on time, so the cause is in the audio system"
    return Problem("xrun", f"the audio system reports {flags}: {cause}", help)


def _quiet_advice(setup: Setup) -> str:
    """Return the advice if other work delays the engine."""
    priority = next((setting for setting in setup.realtime_settings if setting.name == "priority"), None)
    if priority is None:
        return f"{spell('priority', 70)} or less other work keeps other programs from interrupting it"
    if not priority.is_granted:
        return f"it had no real-time priority: {priority.reason}"
    return f"more {spell('headroom_s')} covers it; less other work on this machine avoids it"
