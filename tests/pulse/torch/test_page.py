"""The codec of docs/pytorch.md, from its author's package to a stream."""

import warnings

import numpy as np
import pytest

from tests.documents.pages import pages

for name in ("torch", "onnxscript", "transformers"):
    pytest.importorskip(name, reason=f"needs {name}; docs/pytorch.md says how to install it")


@pytest.mark.slow
def test_the_codec_streams() -> None:
    block, *_ = pages()["docs/pytorch.md"].blocks("python")
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the codec's own age, and which axis is time
        exec(compile(block, "docs/pytorch.md", "exec"), names)
    frames, rest = (next(iter(names[name].values())) for name in ("frames", "rest"))  # type: ignore[attr-defined]
    assert np.concatenate([frames, rest], 2).shape == (1, 128, 16)
