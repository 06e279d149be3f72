"""Masks that are passed to PyTorch's transformers, which take them as they are."""

import contextlib
from collections.abc import Generator
from typing import Any

from pulse.torch.own_thread import OwnThread
from pulse.torch.replacements.attributes import replace_attributes


@contextlib.contextmanager
def skip_mask_checks(torch: Any) -> Generator[None]:
    """Within this context, nn.Transformer and its parts do not look whether a mask is the causal one.

    They look only for a faster attention with the same result; an exporter does not know what a mask holds. Other
    threads are unaffected.
    """
    layers = torch.nn.modules.transformer
    owner, detect = OwnThread(), layers._detect_is_causal_mask

    def is_causal(mask: Any, hint: bool | None = None, size: Any = None) -> bool:
        return hint is True if owner.is_here else detect(mask, hint, size)

    with replace_attributes(layers, _detect_is_causal_mask=is_causal):
        yield
