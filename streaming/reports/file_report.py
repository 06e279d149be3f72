"""The report of a file that was run through a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from pulse.program.program import Program
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, duration
from pulse.support.wording import count_of
from streaming.audio.aligned_audio import RoutedAudio
from streaming.audio.audio_formats import float_hint
from streaming.audio.channels import input_channels
from streaming.audio.file_stream import FileRun
from streaming.builtin import clean_path, noisy_path
from streaming.opening.opened_model import OpenedModel, backend_text
from streaming.routing import sound_inputs


@record
class FileReport(Report):
    """A run over files.

    opened, program  what ran
    result          the result of the run
    source, target  their names; ``-`` for standard input and output
    outputs         the written outputs
    sources         the audio files of the inputs; none if arrays were run
    channel         the channel, as in ``Channels.parse``
    snr_db          the signal-to-noise ratio of the built-in recording, before and after
    """

    opened: OpenedModel
    program: Program
    result: FileRun
    source: str
    target: str
    outputs: Sequence[str]
    sources: Sequence[RoutedAudio] = ()
    channel: str = "mix"
    snr_db: tuple[float, float] | None = None

    @property
    def warnings(self) -> list[str]:
        """The warnings about the written files."""
        count = self.result.nonfinite
        verb = "is" if count == 1 else "are"
        warnings = [f"{count_of(count, 'value')} of the output {verb} NaN or infinite"] if count else []
        return warnings + [
            f"{file.target.name}: clipped to {file.encoding.lower()}: {file.clipping}; "
            f"{float_hint(file.target.audio_format)}"
            for file in self.result.written
            if file.target.audio_format is not None and file.clipping.total
        ]

    @property
    def duration_s(self) -> float | None:
        """The length of the input in seconds; None if unknown."""
        if self.sources:
            return (self.result.samples or 0) / self.sources[0].reader.rate_hz
        return None if self.opened.rate_hz is None else self.result.frames / self.opened.rate_hz

    @property
    def compute_s(self) -> float:
        """Seconds of computing."""
        return self.result.latency.total_ns / 1e9

    @property
    def real_time_factor(self) -> float | None:
        """Compute time per second of the stream, in seconds."""
        if self.opened.rate_hz is None or not self.result.frames:
            return None
        return self.compute_s / (self.result.frames / self.opened.rate_hz)

    def sections(self) -> list[Section]:
        """Return the files, the delay, and the time of the pulses."""
        model, result = self.program.model, self.result
        pairs = [("model", f"{self.opened.title}, {backend_text(self.program)}"), ("file", self._files())]
        pairs += [*self._source_pairs(), *self._output_pairs(), *self.opened.pairs(model)]
        delays = [
            (
                f"delay of {port.name}" if len(self.outputs) > 1 else "delay",
                self.opened.delay_text(port, model.pulse),
            )
            for port in map(model.port, self.outputs)
            if port.streams
        ]
        if delays:
            explanation = "(algorithmic: without computing, devices and the resampler; cut off in the file)"
            pairs += [*delays, ("", explanation)]
        if factor := self.real_time_factor:
            speed = f"{1 / factor:.0f} times as fast as real time, model only"
            pairs.append(("speed", f"real-time factor {factor:.4f}, {speed}"))
        pairs += self._latency_pairs()
        if result.events is not None:
            pairs.append(("events", f"{result.events:,}"))
        if result.completed:
            verb = "follows" if result.completed == 1 else "follow"
            frames = f"{count_of(result.completed, 'frame', form=',')} of zeros {verb} the last one"
            pairs.append(("completed", f"{frames}: the model does not take every length"))
        if self.snr_db is not None:
            before_db, after_db = self.snr_db
            pairs.append(("SNR", f"{before_db:.1f} dB before, {after_db:.1f} dB after"))
        return [Pairs(pairs)]

    def values(self) -> dict[str, Any]:
        result, files = self.result, self.result.written
        return {
            **self.opened.as_dict(self.program.model, map(self.program.model.port, self.outputs)),
            "input": self.source,
            "output": self.target,
            "backend": self.program.backend,
            "weights": self.program.form,
            "activations": self.program.activations,
            "frames": result.frames,
            "streams": result.streams,
            "encoding": files[0].encoding if files else None,
            "clipped_samples": sum(file.clipping.total for file in files),
            "clipping": [count for file in files for count in file.clipping.as_list()],
            "events": result.events,
            "completed_frames": result.completed,
            "nonfinite_values": result.nonfinite,
            "warnings": self.warnings,
            "elapsed_s": result.elapsed_s,
            "compute_s": self.compute_s,
            "real_time_factor": self.real_time_factor,
            "latency": result.latency,
            **({} if self.duration_s is None else {"duration_s": self.duration_s}),
            **(self._audio_values() if self.sources else {}),
            **({} if self.snr_db is None else dict(zip(("snr_before_db", "snr_after_db"), self.snr_db))),
        }

    def _audio_values(self) -> dict[str, Any]:
        reader = self.sources[0].reader
        return {
            "file_rate_hz": reader.rate_hz,
            "file_channels": reader.channels,
            "file_encoding": reader.encoding,
            "channel": self.channel,
            "inputs": [
                {
                    "input": name,
                    "source": source.reader.name,
                    "rate_hz": source.reader.rate_hz,
                    "channels": source.reader.channels,
                    "channel": choice.index,
                }
                for source in self.sources
                for name, choice in source.channels.items()
            ],
            "padded_s": self._padded_s(),
        }

    def _padded_s(self) -> dict[str, float]:
        rate_hz = self.opened.rate_hz
        if rate_hz is None:
            return {}
        inputs = self.program.model.inputs
        rates = {port.name: port.rate for port in inputs}
        rates |= {channel.name: channel.port.rate for channel in input_channels(inputs)}
        return {name: float(frames / rates[name] / rate_hz) for name, frames in self.result.padded.items()}

    def _files(self) -> str:
        source = "the built-in recording" if self.snr_db is not None else _name(self.source, "input")
        files = f"{source} -> {_name(self.target, 'output')}"
        if not self.sources:
            return files
        reader, result = self.sources[0].reader, self.result
        channel = f"channel {self.channel}" if self.channel.isdecimal() else self.channel
        channels = f"{result.streams} streams" if result.streams > 1 else channel
        several = sum(len(source.channels) for source in self.sources) > 1
        taken = "" if several else f", {channels}"
        choice = "mono" if reader.channels == 1 else f"{reader.channels} channels{taken}"
        encoding = f", {result.written[0].encoding.lower()}" if result.written else ""
        return f"{files}  ({self.duration_s:.2f} s, {reader.rate_hz} Hz, {choice}{encoding})"

    def _output_pairs(self) -> list[tuple[str, str]]:
        """Return the outputs that are not written, if there are any."""
        ports = self.program.model.outputs
        others = [port.name for port in ports if port.streams and port.name not in self.outputs]
        if not others:
            return []
        return [("output", f"{', '.join(self.outputs)}; not written: {', '.join(others)}")]

    def _source_pairs(self) -> list[tuple[str, str]]:
        """Return the source of each input, if there are several or one was padded."""
        padded_s = self._padded_s()
        rows = [
            (source.reader, name, choice)
            for source in self.sources
            for name, choice in source.channels.items()
        ]
        is_one_input = len(sound_inputs(self.program)) == 1 and len(self.sources) == 1
        in_order = [choice.index for _, _, choice in rows] == list(range(len(rows)))
        if (len(rows) < 2 or (is_one_input and in_order)) and not padded_s:
            return []
        lines: list[str] = []
        for reader, name, choice in rows:
            channel = "mix" if choice.index is None else f"channel {choice.index}"
            channel_text = (
                "mono" if reader.channels == 1 else f"{channel} of {reader.channels}, counted from 0"
            )
            lines.append(f"{name}: {reader.name}, {reader.rate_hz} Hz, {channel_text}")
        lines += [
            f"{name}: ends {duration(s)} before the longest, zeros follow" for name, s in padded_s.items()
        ]
        return [("" if i else "inputs", text) for i, text in enumerate(lines)]

    def _latency_pairs(self) -> list[tuple[str, str]]:
        latency = self.result.latency
        if not latency.count:
            return [("each pulse", "none: all of it is shorter than a pulse and came with the flush")]
        times = latency.summary().text() + (", of one channel" if self.result.streams > 1 else "")
        pairs = [("each pulse", times)]
        if latency.deadline_s is not None:
            misses = f"missed by {latency.missed} of {latency.count}"
            pairs.append(("deadline", f"{duration(latency.deadline_s)} a pulse, {misses}"))
        return pairs


def builtin_snr_db(target: Path) -> tuple[float, float]:
    """Return the signal-to-noise ratios of the built-in recording, in dB, before and after the model."""
    clean, noisy, output = (soundfile.read(path)[0] for path in (clean_path(), noisy_path(), target))
    before_db, after_db = (  # an encoding in blocks, such as ADPCM, completes the last one with zeros
        float(10 * np.log10(np.sum(clean**2) / np.sum((clean - audio[: len(clean)]) ** 2)))
        for audio in (noisy, output)
    )
    return before_db, after_db


def _name(path: str, side: str) -> str:
    return f"standard {side}" if path == "-" else path
