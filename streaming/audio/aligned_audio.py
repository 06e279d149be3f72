"""Audio for the inputs of a model, at the model's rate and aligned in time; shorter ones are padded with silence."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pulse.support.record import record
from streaming.audio.channels import Channels, Samples
from streaming.audio.interfaces import BLOCK_S, AudioSource
from streaming.native.resample import AudioResampler, resampled_length


@record
class RoutedAudio:
    """An audio file and the channels for inputs: input -> the mean of its channels, one of them, or each."""

    reader: AudioSource
    channels: Mapping[str, Channels]


class AlignedAudio:
    """Blocks for inputs, from their audio files. Samples of the same number are simultaneous in all inputs.

    rate_hz  the rate of the model, to which each file is resampled
    Raises   InputError: a channel that a file does not have

    Iteration yields input -> [samples, streams], for some of the inputs at a time: the file that has advanced the
    least is read next. A file that ends before the others is followed by silence.
    """

    def __init__(self, sources: Sequence[RoutedAudio], rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._tracks = [_Track(source, rate_hz) for source in sources]
        self.padded: dict[str, int] = {}
        """Input -> samples of silence after its file, at the model's rate, for files that ended early."""

    @property
    def samples(self) -> int:
        """Samples read of the longest input, at the rate of the first."""
        first = self._tracks[0]
        if first.made_frames == self.samples_made:
            return first.read_frames
        return resampled_length(self.samples_made, self._rate_hz, first.reader.rate_hz)

    @property
    def samples_made(self) -> int:
        """Samples of the longest input at the model's rate so far."""
        return max(track.made_frames for track in self._tracks)

    @property
    def samples_expected(self) -> int | None:
        """``samples`` at the end; None if unknown."""
        counts = [track.reader.frames for track in self._tracks]
        rate_hz = self._tracks[0].reader.rate_hz
        lengths = [
            resampled_length(count, track.reader.rate_hz, rate_hz)
            for count, track in zip(counts, self._tracks)
            if count is not None
        ]
        return max(lengths) if len(lengths) == len(counts) else None

    def __iter__(self) -> Iterator[dict[str, Samples]]:
        open_tracks, ended_tracks = list(self._tracks), list[_Track]()
        while open_tracks:
            track = min(open_tracks, key=lambda track: track.seconds)
            blocks = track.next()
            if blocks is None:
                blocks = track.end()
                open_tracks.remove(track)
                ended_tracks.append(track)
            yield blocks
            yield from self._pad_with_silence(
                ended_tracks, min((track.made_frames for track in open_tracks), default=self.samples_made)
            )

    def fill(self, samples: int) -> Iterator[dict[str, Samples]]:
        """Yield silence after all files until each has this many samples at the model's rate."""
        yield from self._pad_with_silence(self._tracks, samples)

    def _pad_with_silence(self, tracks: Sequence["_Track"], until: int) -> Iterator[dict[str, Samples]]:
        for track in tracks:
            while track.made_frames < until:
                count = min(until - track.made_frames, max(int(BLOCK_S * self._rate_hz), 1))
                for name in track.channels_by_input:
                    self.padded[name] = self.padded.get(name, 0) + count
                yield track.silence(count)


class _Track:
    """Reads one file and resamples it to the model's rate."""

    def __init__(self, routed: RoutedAudio, rate_hz: int) -> None:
        self.reader, self.channels_by_input = routed.reader, routed.channels
        self._widths = [
            choice.count_streams(self.reader.channels) for choice in self.channels_by_input.values()
        ]
        self._resampler = AudioResampler(self.reader.rate_hz, rate_hz, sum(self._widths))
        self._blocks = iter(self.reader)
        self.read_frames = self.made_frames = 0

    @property
    def seconds(self) -> float:
        """The seconds read so far."""
        return self.read_frames / self.reader.rate_hz

    def next(self) -> dict[str, Samples] | None:
        """Read the next block, by input; None at the end."""
        block = next(self._blocks, None)
        if block is None:
            return None
        self.read_frames += len(block)
        channels = [choice.select(block) for choice in self.channels_by_input.values()]
        return self._split(self._resampler.process(np.concatenate(channels, axis=1)))

    def end(self) -> dict[str, Samples]:
        """Return the last samples of the resampler."""
        return self._split(self._resampler.flush())

    def silence(self, count: int) -> dict[str, Samples]:
        """Return zeros of this length, by input."""
        return self._split(np.zeros((count, sum(self._widths)), np.float32))

    def _split(self, samples: Samples) -> dict[str, Samples]:
        self.made_frames += len(samples)
        parts = np.split(samples, np.cumsum(self._widths)[:-1], axis=1)
        return dict(zip(self.channels_by_input, parts))
