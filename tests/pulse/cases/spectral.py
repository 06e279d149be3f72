"""Fourier transforms, windows and filter banks."""

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from tests.pulse.cases.build import Case, cases, floats, node


def stft() -> Iterator[Case]:
    """Windows and frame lengths, hops, one-sided and not, real and complex, odd and even; time as batch."""
    x = floats("stft", 2, 23, 1)
    hann = np.hanning(6).astype(np.float32)
    for hop in (1, 3, 8):
        for onesided in (0, 1):
            operator = node("STFT", "x hop w", onesided=onesided)
            constants = {"hop": np.int64(hop), "w": hann}
            yield from cases(
                f"STFT_window_{hop}_{onesided}", [operator], {"x": x}, constants, stream={"x": 1}
            )
    for length in (1, 4, 5):
        operator = node("STFT", "x hop _ length", onesided=1)
        constants = {"hop": np.int64(2), "length": np.int64(length)}
        yield from cases(f"STFT_length_{length}", [operator], {"x": x}, constants, stream={"x": 1})
    both = {"hop": np.int64(2), "w": hann, "length": np.int64(6)}
    yield from cases("STFT_both", [node("STFT", "x hop w length")], {"x": x}, both, stream={"x": 0})
    yield from cases("STFT_rank_2", [node("STFT", "x hop w")], {"x": x[..., 0]}, both, stream={"x": 1})
    complex_signal = floats("stft complex", 2, 23, 2)
    operator = node("STFT", "x hop w length", onesided=0)
    yield from cases("STFT_complex", [operator], {"x": complex_signal}, both, stream={"x": 1})
    centred = [node("Pad", "x pads", "padded", mode="reflect"), node("STFT", "padded hop w")]
    constants = {**both, "pads": np.array([0, 3, 0, 0, 3, 0])}
    yield from cases("STFT_centred", centred, {"x": x}, constants, (17, 20), {"x": 1})


def dft() -> Iterator[Case]:
    """Real and complex, every axis, cut and filled, back and forth, up to rank 5."""
    for rank, axis in ((3, 1), (4, 1), (4, 2), (5, 3), (5, 1)):
        for parts in (1, 2):
            x = floats(f"dft{rank}", *(2, 5, 4, 3)[: rank - 1], parts)
            stream = {"x": 0 if axis != 0 else 1}
            for attributes in ({}, {"inverse": 1}, {"onesided": 1}):
                if parts == 2 and "onesided" in attributes:
                    continue
                name = f"DFT_{rank}_{axis}_{parts}_{'_'.join(attributes)}"
                old = node("DFT", "x", axis=axis, **attributes)
                yield from cases(name, [old], {"x": x}, None, (17,), stream)
                new = node("DFT", "x _ axis", **attributes)
                yield from cases(name, [new], {"x": x}, {"axis": np.int64(axis)}, (20,), stream)
    x = floats("dft length", 3, 5, 2)
    for length in (3, 8):
        for inverse in (0, 1):
            operator = node("DFT", "x length", axis=1, inverse=inverse)
            constants = {"length": np.int64(length)}
            yield from cases(
                f"DFT_length_{length}_{inverse}", [operator], {"x": x}, constants, stream={"x": 0}
            )
    for length in (None, 6, 8, 9):
        operator = node("DFT", "x" if length is None else "x length", axis=1, inverse=1, onesided=1)
        constants = {} if length is None else {"length": np.int64(length)}
        yield from cases(f"DFT_real_{length}", [operator], {"x": x}, constants, (17,), {"x": 0})
    yield from cases("DFT_default", [node("DFT", "x")], {"x": x}, None, (17, 20), {"x": 0})
    yield from cases("DFT_time", [node("DFT", "x")], {"x": x}, None, (17, 20), {"x": 1})
    for attributes in ({"inverse": 1}, {"inverse": 1, "onesided": 1}):
        operator = node("DFT", "x", **attributes)
        yield from cases(f"DFT_time_{'_'.join(attributes)}", [operator], {"x": x}, stream={"x": 1})
    onesided = node("DFT", "x", onesided=1)
    yield from cases("DFT_time_onesided", [onesided], {"x": x[..., :1]}, stream={"x": 1})


def window() -> Iterator[Case]:
    """Every window, periodic and symmetric, as a factor."""
    x = floats("window", 3, 10)
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for periodic in (0, 1):
            nodes = [node(op, "size", "w", periodic=periodic), node("Mul", "x w")]
            constants = {"size": np.int64(10)}
            yield from cases(f"{op}_{periodic}", nodes, {"x": x}, constants, stream={"x": 0})
    wide = [
        node("HannWindow", "size", "w", output_datatype=TensorProto.DOUBLE),
        node("Cast", "w", "narrow", to=TensorProto.FLOAT),
        node("Mul", "x narrow"),
    ]
    yield from cases("HannWindow_f64", wide, {"x": x}, {"size": np.int64(10)}, stream={"x": 0})


def mel() -> Iterator[Case]:
    """Few and many bands, whole and partial ranges."""
    for bands, low, high in ((8, 0.0, 8000.0), (20, 50.0, 4000.0), (3, 300.0, 3000.0)):
        constants = {
            "bands": np.int64(bands),
            "length": np.int64(64),
            "rate": np.int64(16000),
            "low": np.float32(low),
            "high": np.float32(high),
        }
        nodes = [node("MelWeightMatrix", "bands length rate low high", "w"), node("MatMul", "x w")]
        x = floats("mel", 4, 33)
        yield from cases(f"MelWeightMatrix_{bands}", nodes, {"x": x}, constants, stream={"x": 0})


ALL = (stft, dft, window, mel)
