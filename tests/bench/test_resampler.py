"""The bench of the resampler times whole blocks."""

import pytest

from bench.resampler import block_us, main


def test_each_block_is_measured() -> None:
    measured_us = block_us(48000, 16000, "medium", 20)
    assert measured_us.shape == (20,)
    assert (measured_us > 0).all()


def test_the_table_has_a_row_for_each_conversion(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.resampler.ROUNDS", 5)
    main()
    assert capsys.readouterr().out.count("medium") == 3
