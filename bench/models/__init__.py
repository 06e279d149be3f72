"""The models of the bench: synthetic networks with seeded weights, the built-in model, published ones of a folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.models.conformer import CHUNK, conformer
from bench.models.entry import Entry, Target
from bench.models.explicit import Explicit
from bench.models.gru import gru
from bench.models.published import published_entries
from bench.models.seanet import HOP, decoder, encoder
from bench.models.separator import separator
from bench.models.tcn import FEATURES, tcn, tcn_explicit_state
from streaming.builtin import model_path

__all__ = ["FEATURES", "PUBLISHED", "Entry", "Explicit", "catalogue", "tcn", "tcn_explicit_state"]

PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "models"
"""The folder of published models, unless the command line names another."""


def catalogue(folder: Path = PUBLISHED) -> Iterator[Entry]:
    """Yield every row of the bench, except those of missing files."""
    sound: dict[str, Any] = {"scale": 0.1, "rate_hz": 16_000.0}
    yield Entry("denoiser", "built-in denoiser", 160, model_path, scale=0.1, rate_hz=16_000.0)
    for pulse, target in ((1, Target(12, 10)), (8, Target(5, 4))):
        twin = lambda pulse=pulse: tcn_explicit_state(pulse)  # noqa: E731
        yield Entry(f"tcn_{pulse}", "TCN", pulse, tcn, twin=twin, target=target)
    yield Entry("gru", "GRU 2x256", 1, gru, target=Target(1.5, 1.2, 1.3))
    target = Target(3, 3)
    yield Entry("seanet_encoder", "SEANet encoder, 16", HOP, encoder, target=target, **sound)
    yield Entry("seanet_decoder", "SEANet decoder, 16", 1, decoder, rate_hz=50.0)
    yield Entry("seanet_encoder_256", "SEANet encoder, 16…256", HOP, lambda: encoder(growth=2), **sound)
    yield Entry("seanet_decoder_256", "SEANet decoder, 16…256", 1, lambda: decoder(growth=2), rate_hz=50.0)
    yield Entry("separator", "separator", 80, separator, **sound)
    yield Entry("conformer", "conformer block", CHUNK, conformer)
    yield from published_entries(folder)
