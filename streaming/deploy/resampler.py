"""The resampler of live streams as a C function, for audio hosts at other rates than the model's."""

from pulse.deploy.deployed import Deployed
from pulse.deploy.sound import SoundPorts, blocks_source
from pulse.jit.entries import Callback
from pulse.jit.language.foreign import c_signature
from streaming.native.filters import QUALITIES
from streaming.native.resample import convert

RESAMPLE = Callback(
    "resample.convert", convert.function, c_signature(None, "i64", "i64", "i64", "i64", "i64")
)
"""Feeds samples and makes outputs: the addresses of the resampler and of the samples, their number, and the same of
the outputs."""
QUALITY = QUALITIES["medium"]


def sound_source(deployed: Deployed, ports: SoundPorts, symbol: str) -> str:
    """Return the C source that takes sound in blocks; ``symbol`` is what ``RESAMPLE`` is called."""
    return blocks_source(deployed, ports, symbol, QUALITY.half_frames, QUALITY.phases, QUALITY.stop_db)
