"""Published models that lie in a folder next to the project; they are not part of it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.models.entry import Entry, Target
from bench.models.explicit import Explicit
from pulse.chunks.chunking import Chunking


def published_entries(folder: Path) -> Iterator[Entry]:
    """Yield the known models that are in the folder."""
    for entry in (*_offline_entries(folder), *_streaming_entries(folder)):
        path = entry.source()
        if isinstance(path, Path) and path.exists():
            yield entry


def _offline_entries(folder: Path) -> Iterator[Entry]:
    """Yield offline models; the authors of two wrote a streaming twin too."""
    yield Entry(
        "gtcrn",
        "GTCRN",
        1,
        lambda: folder / "gtcrn_offline.onnx",
        twin=lambda: Explicit.from_author(folder / "gtcrn_stream.onnx", 1),
        rate_hz=62.5,
        target=Target(6, 6),
    )
    yield Entry(
        "fireredvad",
        "FireRedVAD",
        1,
        lambda: folder / "fireredvad_stream.onnx",
        twin=lambda: Explicit.from_author(folder / "fireredvad_stream_cached.onnx", 1),
        arguments={"inputs": {"feat": "1,T,80,f32"}, "outputs": ["probs"]},
        target=Target(6, 3),
    )
    yield Entry("swift_f0", "SwiftF0", 256, lambda: folder / "swift_f0.onnx", scale=0.1, rate_hz=16_000.0)


def _streaming_entries(folder: Path) -> Iterator[Entry]:
    """Yield models that their authors made streaming: a chunk and states in, a chunk and states out."""
    past = {"input": 64}
    sound: dict[str, Any] = {"scale": 0.1, "rate_hz": 16_000.0}
    constants = {"sr": 16_000}
    path = folder / "silero_vad_16k.onnx"
    yield _chunks("silero", "Silero VAD", 512, path, past, constants, target=Target(3), **sound)
    path = folder / "silero_vad_16k_static.onnx"
    yield _chunks("silero_static", "Silero VAD, static", 512, path, past, target=Target(3, 3), **sound)
    for part in (1, 2):
        path = folder / f"dtln_{part}.onnx"
        target = Target(2.5, 1.6)
        yield _chunks(f"dtln_{part}", f"DTLN {part}", 1, path, {}, target=target, rate_hz=125.0)
    past, path = {"wav_in": 256}, folder / "fastenhancer_t_wav.onnx"
    yield _chunks("fastenhancer_t", "FastEnhancer t", 256, path, past, target=Target(3, 3), **sound)
    path = folder / "fastenhancer_b_spec.onnx"
    yield _chunks("fastenhancer_b", "FastEnhancer b", 1, path, {}, rate_hz=62.5)


def _chunks(
    key: str,
    title: str,
    pulse: int,
    path: Path,
    context: Mapping[str, int],
    constants: Mapping[str, int] | None = None,
    **more: Any,
) -> Entry:
    chunking = Chunking(context=context)

    def twin() -> Explicit:
        return Explicit.from_author(path, pulse, chunking, constants)

    arguments = {"constants": constants, "chunking": chunking}
    return Entry(key, title, pulse, lambda: path, False, twin, arguments, **more)
