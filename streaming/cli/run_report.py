"""What ``pulse run`` tells."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from streaming.cli.console import duration, print_pairs, stderr

if TYPE_CHECKING:
    from pulse.program.program import Program
    from streaming.cli.model import Opened
    from streaming.files import FileRun


def run_report(
    opened: "Opened", program: "Program", source: str, target: str, outputs: list[str], result: "FileRun"
) -> dict[str, Any]:
    """Everything about a run, for JSON."""
    computed_s = result.latency.mean_s * result.latency.count
    ports = [program.model.port(name) for name in outputs]
    sound_s = None if opened.rate_hz is None else result.frames / opened.rate_hz
    return {
        "model": opened.title,
        "input": source,
        "output": target,
        "backend": program.backend,
        "weights": program.form,
        "rate_hz": opened.rate_hz,
        "rate_from": opened.rate_from,
        "pulse_frames": program.pulse,
        "pulse_ms": opened.milliseconds(program.pulse),
        "chunks": None if program.model.chunks is None else program.model.chunks.as_dict(),
        "sizes": dict(program.model.sizes),
        "delays": [opened.delay(port, program.pulse) for port in ports if port.streams],
        "frames": result.frames,
        "streams": result.streams,
        "encoding": result.written[0].encoding if result.written else None,
        "clipped_samples": sum(one.clipping.total for one in result.written),
        "clipping": [found for one in result.written for found in one.clipping.as_list()],
        "events": result.events,
        "nonfinite_values": result.nonfinite,
        "warnings": [f"{result.nonfinite} values of the output are NaN or infinite"]
        if result.nonfinite
        else [],
        "elapsed_s": result.elapsed_s,
        "compute_s": computed_s,
        "real_time_factor": computed_s / sound_s if sound_s else None,
        "latency": result.latency.as_dict(),
    }


def snr(target: Path) -> dict[str, float]:
    """How near the built-in sound and what became of it are to the clean one."""
    import numpy as np
    import soundfile

    from streaming.builtin import clean_path, noisy_path

    clean, noisy, after = (soundfile.read(path)[0] for path in (clean_path(), noisy_path(), target))

    def snr_db(sound: Any) -> float:
        return float(10 * np.log10(np.sum(clean**2) / np.sum((clean - sound) ** 2)))

    return {"snr_before_db": snr_db(noisy), "snr_after_db": snr_db(after)}


def print_run(report: dict[str, Any], opened: "Opened", program: "Program") -> None:
    """The same in words."""
    from streaming.cli.model import backend_text

    latency = report["latency"]
    source = "the built-in sound" if "snr_before_db" in report else _name(report["input"], "input")
    files = f"{source} -> {_name(report['output'], 'output')}"
    if "file_rate_hz" in report:
        channels = report["file_channels"]
        heard = f"{report['streams']} streams" if report["streams"] > 1 else report["channel"]
        choice = "mono" if channels == 1 else f"{channels} channels, {heard}"
        encoding = "" if report["encoding"] is None else f", {report['encoding'].lower()}"
        files += f"  ({report['duration_s']:.2f} s, {report['file_rate_hz']} Hz, {choice}{encoding})"
    pairs = [
        ("model", f"{report['model']}, {backend_text(program)}"),
        ("file", files),
        *_heard_pairs(report.get("heard", []), report.get("padded_s", {})),
        ("rate", opened.rate_text()),
    ]
    pairs.append(("pulse", opened.pulse_text(report["pulse_frames"])))
    pairs += opened.model.detected()
    for delay in report["delays"]:
        own, fill, total = delay["model_frames"], delay["reblocking_frames"], delay["total_frames"]
        ms = "" if delay["total_ms"] is None else f" = {delay['total_ms']:.2f} ms"
        pairs.append(("delay", f"{total:g} frames{ms}: {own:g} of the model + {fill} until a pulse is full"))
    if report["delays"]:
        pairs.append(("", "(algorithmic: without computing, devices and the resampler; cut off in the file)"))
    if report["real_time_factor"]:
        factor = report["real_time_factor"]
        pairs.append(
            (
                "speed",
                f"real-time factor {factor:.4f}, {1 / factor:.0f} times as fast as the sound, model alone",
            )
        )
    times = ", ".join(
        f"{name} {duration(latency[key] / 1e6)}"
        for name, key in (
            ("p50", "p50_us"),
            ("p90", "p90_us"),
            ("p99", "p99_us"),
            ("p99.9", "p999_us"),
            ("max", "max_us"),
        )
    )
    if not latency["count"]:
        times = "none: all of it is shorter than a pulse and came with the flush"
    pairs.append(("each chunk", times if report["streams"] == 1 else f"{times}, of one channel"))
    if latency["deadline_us"] is not None and latency["count"]:
        limit = duration(latency["deadline_us"] / 1e6)
        pairs.append(("deadline", f"{limit} a chunk, missed by {latency['missed']} of {latency['count']}"))
    if report["events"] is not None:
        pairs.append(("events", f"{report['events']:,}"))
    if "snr_before_db" in report:
        pairs.append(
            ("SNR", f"{report['snr_before_db']:.1f} dB before, {report['snr_after_db']:.1f} dB after")
        )
    print_pairs(pairs)
    for warning in report["warnings"]:
        stderr().print(f"warning: {warning}", style="yellow")


def _heard_pairs(rows: list[dict[str, Any]], padded_s: dict[str, float]) -> list[tuple[str, str]]:
    """The source of each input, where there are several or one was padded."""
    if len(rows) < 2 and not padded_s:
        return []
    told: list[str] = []
    for row in rows:
        chosen = "mix" if row["channel"] is None else f"channel {row['channel']}"
        form = "mono" if row["channels"] == 1 else f"{chosen} of {row['channels']}, counted from 0"
        text = f"{row['input']}: {row['source']}, {row['rate_hz']} Hz, {form}"
        told.append(text)
    told += [
        f"{name}: ends {duration(seconds)} before the longest, zeros follow"
        for name, seconds in padded_s.items()
    ]
    return [("" if place else "heard", text) for place, text in enumerate(told)]


def _name(path: str, side: str) -> str:
    return f"standard {side}" if path == "-" else path
