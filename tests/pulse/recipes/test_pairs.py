"""First recipes of two models, and of every published one: they run, or one line says what is missing."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import pulse
from bench.models.recipe_pages import recipes
from pulse.recipes.proposal import Proposal, propose_recipe
from pulse.recipes.reading import parse_recipe
from pulse.recipes.recipe import RecipeContext
from pulse.recipes.recipe_model import join_stages, recipe_model
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.pulse.recipes.recipe_files import save_model, write_recipe
from tests.pulse.recipes.references import REFERENCES
from tests.shared import shared_path

Size = list[int | str]


def pair(folder: Path, sizes: list[tuple[Size, Size]]) -> Proposal:
    """Propose a recipe for models that negate or take means; the recipe opens."""
    paths: list[Path] = []
    for number, (read, size_out) in enumerate(sizes, 1):
        nodes = [node("Neg", "x", "y")] if read == size_out else [node("ReduceMean", "x", "y", axes=[-1])]
        paths.append(save_model(folder, f"{number}.onnx", models.build(nodes, {"x": read}, {"y": size_out})))
    proposal = propose_recipe(paths, folder)
    recipe_model(write_recipe(folder, proposal.text))
    assert not [note for note in proposal.notes if "does not fit" in note]
    return proposal


SPECTRUM: Size = [1, 257, "T", 2]
MAGNITUDES: Size = [1, "T", 257]
FRAMES: Size = [1, "T", 512]
SOUND: Size = [1, "T"]
BANDS: Size = [1, "T", 80]
PAIRS: list[tuple[Size, Size, list[str]]] = [
    (MAGNITUDES, FRAMES, ["frames", "rfft", "magnitude", "1.onnx", "mask", "irfft", "2.onnx", "overlap_add"]),
    (SPECTRUM, FRAMES, ["frames", "rfft", "1.onnx", "irfft", "2.onnx", "overlap_add"]),
    (SPECTRUM, SPECTRUM, ["stft", "1.onnx", "2.onnx", "istft"]),
    (SPECTRUM, [1, 257, "T"], ["stft", "1.onnx", "magnitude", "2.onnx", "mask", "istft"]),
    (BANDS, BANDS, ["kaldi_fbank", "1.onnx", "2.onnx"]),
    (FRAMES, FRAMES, ["frames", "1.onnx", "2.onnx", "overlap_add"]),
    (SPECTRUM, BANDS, ["stft", "1.onnx", "istft", "kaldi_fbank", "2.onnx"]),
    (SOUND, SPECTRUM, ["1.onnx", "stft", "2.onnx", "istft"]),
    (SPECTRUM, SOUND, ["stft", "1.onnx", "istft", "2.onnx"]),
    (
        MAGNITUDES,
        [1, "T", 161],
        ["stft", "magnitude", "1.onnx", "mask", "istft", "stft", "magnitude", "2.onnx", "mask", "istft"],
    ),
]


@pytest.mark.parametrize(("size", "other", "stages"), PAIRS)
def test_the_stages_between_two_models_follow_from_their_sizes(
    tmp_path: Path, size: Size, other: Size, stages: list[str]
) -> None:
    """The recipe has the stages of both models, and those between them."""
    proposal = pair(tmp_path, [(size, size), (other, other)])
    recipe = parse_recipe(proposal.text, RecipeContext.of(tmp_path / "recipe.toml"))
    assert [stage.options.get("model", stage.kind) for stage in recipe.stages] == stages
    assert any("1.onnx" in note and "2.onnx" in note for note in proposal.notes)


def test_models_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        pulse.LoadError, match=r"1\.onnx gives 1,T,1 and 2\.onnx takes 1,257,T,2: no usual transform connects"
    ):
        pair(tmp_path, [(BANDS, [1, "T", 1]), (SPECTRUM, SPECTRUM)])


def test_the_two_files_of_dtln_give_the_recipe_of_the_page(tmp_path: Path) -> None:
    """DTLN's two files, from their sizes alone, give the recipe of the page, and the author's output."""
    for name in ("dtln_1.onnx", "dtln_2.onnx"):
        (tmp_path / name).symlink_to(shared_path("models") / name)
    proposal = propose_recipe([tmp_path / "dtln_1.onnx", tmp_path / "dtln_2.onnx"], tmp_path)
    expected = recipes()["dtln.toml"].partition("rate = ")[2]
    assert proposal.text.partition("rate = ")[2] == expected
    x, expected = REFERENCES["dtln.toml"]()
    (output,) = recipe_model(write_recipe(tmp_path, proposal.text)).run(x[None, :16_000]).values()
    assert np.abs(output[0] - expected[: output.shape[1]]).max() <= 1e-4 * np.abs(expected).max()


def test_a_proposal_for_every_published_model_streams(tmp_path: Path) -> None:
    for file in sorted(shared_path("models").glob("*.onnx")):
        (tmp_path / file.name).symlink_to(file)
        proposal = propose_recipe([tmp_path / file.name], tmp_path)
        path = write_recipe(tmp_path, proposal.text)
        x = normal_noise(1, 8_192) / 10
        assert all(np.isfinite(output).all() for output in recipe_model(path).run(x).values()), file
        pulse.stream(path, backend="numpy")
        if file.name == "silero_vad_16k.onnx":
            assert "pulse = 512\nconstants = { sr = 16000 }\n" in proposal.text
            assert any("as in context = { input = 64 }" in note for note in proposal.notes)
        if file.name == "silero_vad_16k_static.onnx":
            assert any("all of them are assumed to be new" in note for note in proposal.notes)
        if file.name == "fastenhancer_t_wav.onnx":
            assert "context = { wav_in = 256 }\n" in proposal.text
            assert any("delay = { wav_out = 256 }" in note for note in proposal.notes)


@pytest.mark.slow
def test_model_pairs_open_or_are_refused_in_one_line(tmp_path: Path) -> None:
    files = sorted(shared_path("models").glob("*.onnx"))
    for file in files:
        (tmp_path / file.name).symlink_to(file)
    for first, other in product(files, files):
        try:
            proposal = propose_recipe([tmp_path / first.name, tmp_path / other.name], tmp_path)
        except pulse.LoadError as error:
            assert "no usual transform connects the two" in str(error), (first, other)
            continue
        assert not [note for note in proposal.notes if "does not fit" in note], (
            first.name,
            other.name,
            proposal,
        )
        join_stages(parse_recipe(proposal.text, RecipeContext.of(tmp_path / "recipe.toml")))
