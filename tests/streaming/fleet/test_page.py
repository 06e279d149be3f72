"""The example of the page about fleets, with a fleet in this process."""

import numpy as np
import pytest

from tests.documents.pages import pages
from tests.streaming.fleet.local import blocks_of, fleet, small_deployment

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_the_code_of_the_fleet_page_runs() -> None:
    blocks, expected = blocks_of(20, 1)
    deployment = small_deployment()
    (code,) = pages()["docs/fleet.md"].blocks("python")
    names = {}
    exec(code.replace('"denoiser", ', ""), names)
    with fleet("ab", ("wa", "a", deployment), ("wb", "b", deployment)) as local_fleet:
        outputs = await names["denoise"](blocks[0], local_fleet.urls)
    assert outputs.keys() == expected.keys()
    for name, array in expected.items():
        assert np.array_equal(outputs[name], array), name
