"""The streaming modes of packages that have one, as new streams of a module."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from bench.torch_codes.author_run import AuthorStream, author_copy


def moshi_stream(module: Any, method: str = "forward") -> AuthorStream:
    """Return the streaming of moshi's modules, which keep their own state between calls."""

    def begin() -> Callable[..., Any]:
        copy = author_copy(module)
        copy.streaming_forever(1)
        return getattr(copy, method)

    return AuthorStream(begin)


def tcn_stream(module: Any) -> AuthorStream:
    """Return the streaming of pytorch-tcn, which has buffers before its convolutions."""

    def begin() -> Callable[..., Any]:
        copy = author_copy(module)
        copy.reset_buffers()
        return lambda x: copy.inference(x)

    return AuthorStream(begin)


def denoiser_stream(module: Any) -> AuthorStream:
    """Return denoiser's ``DemucsStreamer``, which computes each window again and keeps the decoder's overlaps."""
    streamer = import_module("denoiser.demucs").DemucsStreamer

    def begin() -> Callable[..., Any]:
        copy = streamer(author_copy(module), dry=0)
        return lambda x: copy.feed(x[0])[None]

    return AuthorStream(begin)


def fsmn_stream(module: Any) -> AuthorStream:
    """Return the streaming of FunASR's FSMN, which fills a dict of caches."""

    def begin() -> Callable[..., Any]:
        copy, caches = author_copy(module), dict[str, Any]()
        return lambda x: copy(x, caches)

    return AuthorStream(begin)


def emformer_stream(module: Any) -> AuthorStream:
    """Return the streaming of Emformer's ``infer``, whose chunks overlap by the right context."""
    torch = import_module("torch")
    right = module.right_context_length

    def begin() -> Callable[..., Any]:
        copy = author_copy(module)
        overlap, states = torch.zeros(1, right, copy.emformer_layers[0].input_dim), None

        def infer(x: Any) -> Any:
            nonlocal overlap, states
            chunk = torch.cat([overlap, x], 1)
            overlap = chunk[:, chunk.shape[1] - right :]
            y, _, states = copy.infer(chunk, torch.tensor([chunk.shape[1]]), states)
            return y

        return infer

    return AuthorStream(begin, module.segment_length)
