"""SoundConversion: conversion of a stream's sound between the client's rate and format and the model's."""

from collections.abc import Mapping

from pulse.errors import InputError
from pulse.facts import Array
from pulse.support.not_copyable import NotCopyable
from pulse.support.record import record
from streaming.protocol.errors import ProtocolError
from streaming.protocol.messages import Hello
from streaming.protocol.opus import RATE_HZ as OPUS_HZ
from streaming.protocol.opus import SKIP_SAMPLES
from streaming.protocol.ports import StreamPort
from streaming.serve.port_sound import InputSound, OutputSound
from streaming.snapshot import pack, unpack


@record
class SoundModel:
    """The properties of a model that a conversion needs: name, ports, rate, and whether streams make checkpoints."""

    name: str
    inputs: tuple[StreamPort, ...]
    outputs: tuple[StreamPort, ...]
    rate_hz: int | None
    saves: bool


class SoundConversion(NotCopyable, reason="it remembers samples; begin a new stream"):
    """The rate and the samples in which a client sends and receives a model's sound; other ports stay unchanged.

    inputs, outputs  ports as the client sees them
    client_hz        samples per second of the client; None if the model's rate is unknown
    name             the name of the format: ``f32``, ``pcm16`` or ``opus``
    input_sounds, output_sounds  port name -> converter of sound; empty if rate and samples are those of the model
    Raises           ProtocolError: the model has no rate, or ports other than sound, or the rates are too far apart
    """

    def __init__(self, model: SoundModel, hello: Hello) -> None:
        self.name = hello.format
        self.inputs: tuple[StreamPort, ...] = model.inputs
        self.outputs: tuple[StreamPort, ...] = model.outputs
        self.input_sounds: dict[str, InputSound] = {}
        self.output_sounds: dict[str, OutputSound] = {}
        client_hz = hello.rate or (OPUS_HZ if self.name == "opus" else model.rate_hz)
        self.client_hz, self._model_hz, self._skip = client_hz, model.rate_hz, hello.skip or 0
        if self.name == "opus" and client_hz != OPUS_HZ:
            raise ProtocolError("rate", f"opus at {client_hz} Hz", f"send it at {OPUS_HZ} Hz")
        if model.rate_hz is None or (client_hz == model.rate_hz and self.name != "opus"):
            if self.name == "opus":
                raise ProtocolError("rate", f"{model.name} has no rate", "send f32")
            self.client_hz = model.rate_hz
            return
        assert client_hz is not None
        self._require_sound(model)
        try:
            self._convert(client_hz, model.rate_hz)
        except InputError as error:
            raise ProtocolError(
                "rate",
                f"{model.name} takes {model.rate_hz} Hz: {error}",
                f"send f32 or pcm16 at {model.rate_hz} Hz",
            ) from None

    @property
    def is_identity(self) -> bool:
        """Whether nothing is converted."""
        return not self.input_sounds

    def ready_frames(self, frames: int, name: str) -> int:
        """Return the frames that the model gets from this many frames of an input."""
        if self.is_identity:
            return frames
        sound = self.input_sounds[name]
        return self.model_frames(max(0, frames - sound.delay_frames - sound.skipped_frames))

    def model_frames(self, frames: int) -> int:
        """Convert frames of the client to frames of the model; those that a resampler holds count."""
        return frames if self.is_identity else frames * (self._model_hz or 1) // (self.client_hz or 1)

    def as_dict(self) -> dict[str, int]:
        """Return the fields of ``ready``: the samples that a decoder must skip at the start."""
        return {"skip": SKIP_SAMPLES} if self.name == "opus" else {}

    def client_frames(self, frames: int) -> int:
        """Convert frames of the model to frames of the client."""
        return frames if self.is_identity else frames * (self.client_hz or 1) // (self._model_hz or 1)

    def decode_input(self, name: str, frames: Array | bytes, count: int) -> Array:
        """Convert frames of the client to the model's input. Raises ProtocolError: a packet that cannot be decoded."""
        if self.input_sounds:
            return self.input_sounds[name].push(frames, count)
        assert not isinstance(frames, bytes)
        return frames

    def count_received(self, received: Mapping[str, int]) -> list[int]:
        """Return frames of each input, at the client's rate."""
        if self.is_identity:
            return list(received.values())
        return [sound.received for sound in self.input_sounds.values()]

    def count_sent(self, sent_frames: Mapping[str, int]) -> list[int]:
        """Return frames of each streaming output, at the client's rate."""
        return [
            self.output_sounds[name].sent_frames if name in self.output_sounds else count
            for name, count in sent_frames.items()
        ]

    def reset(self) -> None:
        """Start a new stream."""
        for sound in self._sounds:
            sound.reset()

    def snapshot(self) -> bytes:
        """Return a snapshot of all resamplers; empty if there are none."""
        return pack([], [sound.snapshot() for sound in self._sounds]) if self._sounds else b""

    def restore(self, snapshot: bytes) -> None:
        """Restore a snapshot. Raises InputError: the stream had another rate."""
        chunks = unpack(snapshot)[1] if snapshot else []
        if len(chunks) != len(self._sounds):
            raise InputError("the stream had another rate; continue at that rate")
        for sound, chunk in zip(self._sounds, chunks):
            sound.restore(chunk)

    @property
    def _sounds(self) -> list["InputSound | OutputSound"]:
        return [*self.input_sounds.values(), *self.output_sounds.values()]

    def _convert(self, client_hz: int, model_hz: int) -> None:
        opus = self.name == "opus"
        skip = self._skip if opus else None
        self.input_sounds = {port.name: InputSound(port, client_hz, model_hz, skip) for port in self.inputs}
        delay_frames = next(iter(self.input_sounds.values())).delay_frames
        self.output_sounds = {
            port.name: OutputSound(port, model_hz, client_hz, self.name, delay_frames)
            for port in self.outputs
            if _is_sound_at(port, model_hz) and not (opus and port.values > 1)
        }
        self.inputs = tuple(self.input_sounds[port.name].port for port in self.inputs)
        self.outputs = tuple(
            self.output_sounds[port.name].port if port.name in self.output_sounds else port
            for port in self.outputs
        )

    def _require_sound(self, model: SoundModel) -> None:
        others = [port.name for port in model.inputs if not _is_sound_at(port, model.rate_hz)]
        if others:
            raise ProtocolError(
                "rate",
                f"{model.name} takes {model.rate_hz} Hz, and its input {others[0]} is not sound",
                f"send it as f32 at {model.rate_hz} Hz",
            )
        several = [port for port in model.inputs if port.values > 1]
        if self.name == "opus" and several:
            raise ProtocolError(
                "rate",
                f"a packet of Opus has one channel, and the input {several[0].name} of {model.name} has "
                f"{several[0].values}",
                "send f32 or pcm16",
            )
        if model.saves and self.name == "opus":
            raise ProtocolError(
                "rate", "checkpoints do not contain Opus coders", f"send f32 or pcm16 at {self.client_hz} Hz"
            )


def _is_sound_at(port: StreamPort, rate_hz: int | None) -> bool:
    """Return whether a port is sound: samples at the model's rate, unlike a probability per pulse."""
    return port.kind == "sound" and port.rate == rate_hz
