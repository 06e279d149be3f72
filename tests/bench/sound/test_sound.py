"""The bench of recipes: results are checked before they are timed, and missing parts are reported."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.shared import shared_path

contests = pytest.importorskip("bench.sound.contests", exc_type=ImportError)
main = pytest.importorskip("bench.sound.__main__", exc_type=ImportError).main


QUICK = "dtln.toml"
"""The recipe that the default suite tries."""


@pytest.mark.parametrize(
    "contest",
    [
        pytest.param(contest, id=contest.recipe, marks=[] if contest.recipe == QUICK else [pytest.mark.slow])
        for contest in contests.CONTESTS
    ],
)
def test_each_chain_is_compared_with_other_runtimes(contest: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The author's loop, our stream and the exported file all reproduce the author's recording."""
    main([contest.recipe, "--models", str(shared_path("models")), "--rounds", "1", "--steps", "5"])
    rows = capsys.readouterr().out.splitlines()
    assert any(row.startswith(f"| {contest.recipe} | **pulse**") for row in rows)
    assert len([row for row in rows if "onnxruntime" in row and "(" in row]) >= 2


def test_wrong_results_are_not_timed() -> None:
    hops = [np.ones(4, np.float32)] * 3
    contests.require_right("same", lambda x: x, hops, np.ones(12, np.float32), 0)
    with pytest.raises(contests.WrongResultError, match=r"twice: off by 1\.0e\+00 of the largest value"):
        contests.require_right("twice", lambda x: 2 * x, hops, np.ones(12, np.float32), 0)
    with pytest.raises(contests.WrongResultError, match="silent: off by inf"):
        contests.require_right("silent", lambda x: None, [*hops], np.ones(12, np.float32), 0)


def test_bad_use_is_refused_with_a_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["gone.toml"])
    assert "no recipe is called gone.toml; choose from gtcrn.toml" in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"not here; --models is the folder"):
        main(["gtcrn.toml", "--models", str(tmp_path / "models")])
