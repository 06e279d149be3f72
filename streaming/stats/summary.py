"""The report of a live run: its settings, its times, and its problems with causes and remedies."""

from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, duration
from pulse.support.wording import count_of
from streaming.stats.live_statistics import StatisticsSummary
from streaming.stats.problems import find_problems
from streaming.stats.setup import Setup

ENGINES = {
    "callback": "in the callback of the device",
    "worker": "a native thread",
    "python": "a thread in Python, which waits for the GIL",
}


@record
class LiveReport(Report):
    """The report of a live run: its settings and its statistics."""

    setup: Setup
    statistics: StatisticsSummary

    def sections(self) -> list[Section]:
        return [Pairs(self.pairs())]

    def pairs(self) -> list[tuple[str, str]]:
        """Return names and texts."""
        statistics, counters = self.statistics, self.statistics.counters
        pulses = count_of(counters.pulses, "pulse", form=",")
        ran = (
            f"{span(statistics.elapsed_s)}, {pulses} in {count_of(counters.callbacks, 'callback', form=',')}"
        )
        pairs = [*_setup_pairs(self.setup), ("ran", ran)]
        pairs.append(("frames", f"{counters.frames_in:,} in, {counters.frames_out:,} out"))
        if statistics.total.count:
            pairs.append(("latency", f"{statistics.total.text()}, from arrival until the output is ready"))
            pairs.append(("computing", statistics.compute.text()))
        misses = f"missed by {counters.missed:,} of {pulses}"
        pairs.append(("deadline", f"{duration(self.setup.deadline_s)}, {misses}"))
        pairs.append(("delay", str(statistics.delay)))
        problems = find_problems(self.setup, statistics)
        pairs += [(problem.name, str(problem)) for problem in problems]
        if not problems:
            pairs.append(("", "nothing was late, lost or silent, and the audio system reports no xrun"))
        in_setup = {str(setting) for setting in self.setup.realtime_settings}
        return pairs + [("note", note) for note in statistics.notes if note not in in_setup]


def _setup_pairs(setup: Setup) -> list[tuple[str, str]]:
    pulse = f"{count_of(setup.pulse_frames, 'frame')} = {duration(setup.pulse_s)} at {setup.rate_hz} Hz"
    streams = "1 stream" if setup.streams == 1 else f"{setup.streams} streams"
    block = f"blocks of {setup.block_frames} = {duration(setup.block_s)}"
    if not setup.block_frames:
        block = "block size chosen by the device"
    rows = "" if setup.activations == "f32" else f" by {setup.activations}"
    pairs = [
        ("model", f"{setup.model}, {setup.backend} {setup.weights}{rows}"),
        ("pulse", pulse),
        ("devices", f"{setup.input or 'none'} -> {setup.output or 'none'}"),
        ("", f"{setup.device_rate_hz} Hz, {block}, {setup.channels}: {streams}"),
        ("engine", f"{ENGINES.get(setup.engine, setup.engine)}, policy {setup.policy}"),
    ]
    return pairs + [
        ("" if index else "realtime", str(setting)) for index, setting in enumerate(setup.realtime_settings)
    ]


def span(seconds: float) -> str:
    """Format a duration: 12.3 s, 4:05, 1:02:03."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, remaining_s = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remaining_s:02}" if hours else f"{minutes}:{remaining_s:02}"
