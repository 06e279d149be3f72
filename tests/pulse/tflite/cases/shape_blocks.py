"""Blocks of space as batches or channels."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.tflite.cases.case import MOVED_TYPES, TfliteCase, i32, moved_case


def blocks() -> Iterator[TfliteCase]:
    """Blocks as batches, or as channels, and back."""
    for dtype in MOVED_TYPES:
        for kind, shape, shape_out, amounts in (
            ("SPACE_TO_BATCH_ND", (1, 5, 4, 2), (6, 3, 2, 2), [[1, 0], [0, 2]]),
            ("BATCH_TO_SPACE_ND", (6, 3, 2, 2), (1, 5, 5, 2), [[1, 0], [0, 1]]),
        ):
            yield moved_case(dtype, kind, shape, shape_out, [i32(2, 3), np.array(amounts, np.int32)], "")
        for kind, options, shape, shape_out in (
            ("DEPTH_TO_SPACE", "DepthToSpaceOptions", (1, 3, 2, 8), (1, 6, 4, 2)),
            ("SPACE_TO_DEPTH", "SpaceToDepthOptions", (1, 6, 4, 2), (1, 3, 2, 8)),
        ):
            yield moved_case(dtype, kind, shape, shape_out, [], options, BlockSize=2)


ALL = (blocks,)
