"""Proposed recipes: what the sizes of a model imply is reported, and the recipe opens as it is."""

from pathlib import Path

import numpy as np
import pytest

import pulse
from bench.models.recipe_pages import recipes
from pulse.recipes.proposal import Proposal, propose_recipe
from pulse.recipes.reading import parse_recipe
from pulse.recipes.recipe import RecipeContext
from pulse.recipes.recipe_model import recipe_model
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.pulse.recipes.recipe_files import save_model, write_recipe
from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.builder import file_bytes as written_tflite
from tests.shared import shared_path


def proposal(folder: Path, read: list[int | str], shape_out: list[int | str] | None = None) -> Proposal:
    """Propose a recipe for a model with one input and output of these axes; the recipe opens."""
    nodes = [node("Neg", "x", "y")] if shape_out is None else [node("ReduceMean", "x", "y", axes=[-1])]
    save_model(folder, "model.onnx", models.build(nodes, {"x": read}, {"y": shape_out or read}))
    proposed = propose_recipe([folder / "model.onnx"], folder)
    path = write_recipe(folder, proposed.text)
    assert not [note for note in proposed.notes if "does not fit" in note]
    assert [fact.rank for fact in recipe_model(path).inputs.values()] == [2]
    return proposed


@pytest.mark.parametrize(
    ("read", "stages"),
    [
        ([1, 257, "T", 2], ["stft = { n_fft = 512, hop = 256", "istft = { n_fft = 512"]),
        ([1, "T", 161, 2], ['n_fft = 320, hop = 160, window = "sqrt_hann", layout = "T,F,2" }', "istft"]),
        ([1, 2, "T", 257], ['layout = "2,T,F"', 'length = "T", layout = "2,T,F"']),
        (
            [1, "T", 514],
            ['layout = "T,2F"', 'istft = { n_fft = 512, hop = 256, window = "sqrt_hann", length = "T"'],
        ),
        (
            [1, 257, "T"],
            ['as = "spectrum"', "magnitude = {}", 'as = "mask"', 'from = ["spectrum", "mask"]', "istft"],
        ),
        ([1, "T", 80], ["kaldi_fbank = { num_mel_bins = 80 }"]),
        ([1, "T", 400], ["kaldi_fbank = { num_mel_bins = 80 }", "stack = { m = 5, n = 1 }"]),
        ([1, "T", 560], ["stack = { m = 7, n = 6 }"]),
        ([1, 80, "T"], ['mel_spectrogram = { n_mels = 80, log = "natural", output_layout = "F,T" }']),
        ([1, "T", 512], ["frames = { size = 512, hop = 128, pad_start = 384 }", "overlap_add"]),
        ([1, "T"], []),
    ],
)
def test_stages_are_guessed_from_sizes(tmp_path: Path, read: list[int | str], stages: list[str]) -> None:
    """The stages before and after the model have this order; every guess is reported."""
    proposed = proposal(tmp_path, read)
    places = [proposed.text.index(stage) for stage in stages]
    assert places == sorted(places)
    assert "the rate of 16000 Hz is a guess" in proposed.notes
    assert proposed.text.startswith("rate = 16000\n")
    assert len(proposed.notes) >= 2


def test_a_spectrum_of_481_bins_is_sound_of_48_khz(tmp_path: Path) -> None:
    assert proposal(tmp_path, [1, 481, "T", 2]).text.startswith("rate = 48000\n")


def test_an_output_of_another_size_gets_no_inverse_transform(tmp_path: Path) -> None:
    """The proposal ends with the model, and a note has the reason."""
    proposed = proposal(tmp_path, [1, "T", 257], [1, "T", 1])
    assert "istft" not in proposed.text
    assert "no inverse transform takes its output" in proposed.notes


def test_a_proposal_has_the_lines_that_a_stage_needs(tmp_path: Path) -> None:
    """The lines are one stream of several, outputs that continue, the rate of its metadata, and a pulse."""
    nodes = [node("Neg", "x", "y"), node("ReduceSum", "w", "z", keepdims=0)]
    model = models.build(
        nodes, {"x": ["batch", "time", 80]}, {"y": ["batch", "time", 80], "z": []}, {"w": normal_noise(3)}
    )
    save_model(tmp_path, "model.onnx", model)
    proposed = propose_recipe([tmp_path / "model.onnx"], tmp_path)
    assert 'outputs = ["y"]\n' in proposed.text
    assert "inputs" not in proposed.text
    (tmp_path / "below").mkdir()
    assert 'model = "../model.onnx"' in propose_recipe([tmp_path / "model.onnx"], tmp_path / "below").text
    save_model(tmp_path, "told.onnx", models.cache_of_sound(), rate_hz=44_100)
    proposed = propose_recipe([tmp_path / "told.onnx"], tmp_path)
    assert proposed.text == 'rate = 44100\n\n[[stage]]\nmodel = "told.onnx"\n'
    assert proposed.notes == ("x (1,T) is audio; nothing is added before it",)
    size = [1, "time", 80]
    nodes = [node("Add", "x h", "y"), node("Neg", "h", "hn")]
    save_model(
        tmp_path,
        "chunks.onnx",
        models.build(nodes, {"x": size, "h": [1, 1, 80]}, {"y": size, "hn": [1, 1, 80]}),
    )
    proposed = propose_recipe([tmp_path / "chunks.onnx"], tmp_path)
    assert "pulse = 1\n" in proposed.text
    assert any("chunks of any length" in note for note in proposed.notes)
    x = normal_noise(1, 4_000, seed=4)
    assert recipe_model(write_recipe(tmp_path, proposed.text)).run(x)["y"].shape == (1, 23, 80)


def test_models_without_a_guess_are_refused(tmp_path: Path) -> None:
    def message_of(model: object) -> str:
        save_model(tmp_path, "model.onnx", model)
        with pytest.raises(pulse.PulseError) as raised:
            propose_recipe([tmp_path / "model.onnx"], tmp_path)
        return str(raised.value)

    size = [1, "T", 77]
    odd = models.build([node("Neg", "x", "y")], {"x": size}, {"y": size})
    assert "x (1,T,77,f32) is not audio, a spectrum, a filter bank or a frame of a usual size" in message_of(
        odd
    )
    size = [1, 1, "T", 257]
    channel = models.build([node("Neg", "x", "y")], {"x": size}, {"y": size})
    assert message_of(channel).endswith(
        "; unsqueeze = { axis = 1 } after a front end adds its axis of size 1"
    )
    size = [1, 2, "T"]
    stereo = models.build([node("Neg", "x", "y")], {"x": size}, {"y": size})
    assert message_of(stereo).endswith("; if its frames are channels of audio, it needs none")
    fixed = models.build([node("Neg", "x", "y")], {"x": [1, 7]}, {"y": [1, 7]})
    assert message_of(fixed).endswith("has no streaming input and output; there is nothing to put around it")
    assert "was written in pulses, so it needs no recipe" in message_of(
        pulse.stream(models.cache_of_sound()).model.to_onnx()
    )


@pytest.mark.parametrize(
    ("read", "channels", "stages"),
    [
        ([1, 2, 257, "T"], 2, ["stft", "magnitude", "unsqueeze", "model", "squeeze", "mask", "istft"]),
        ([1, 1, "T", 257], 1, ["stft", "magnitude", "unsqueeze", "model", "squeeze", "mask", "istft"]),
        ([1, 3, 257, "T", 2], 3, ["stft", "unsqueeze", "model", "squeeze", "istft"]),
        ([1, 2, "T", 512], 2, ["frames", "unsqueeze", "model", "squeeze", "overlap_add"]),
        ([1, 4, "T", 80], 4, ["kaldi_fbank", "unsqueeze", "model"]),
    ],
)
def test_the_second_axis_may_be_channels(
    tmp_path: Path, read: list[int | str], channels: int, stages: list[str]
) -> None:
    """The recipe takes as many channels; what it returns for each is what a model of one channel returns."""
    save_model(tmp_path, "model.onnx", models.build([node("Abs", "x", "y")], {"x": read}, {"y": read}))
    alone = [read[0], *read[2:]]
    save_model(tmp_path, "alone.onnx", models.build([node("Abs", "x", "y")], {"x": alone}, {"y": alone}))
    proposed = propose_recipe([tmp_path / "model.onnx"], tmp_path, channels=channels)
    assert not [note for note in proposed.notes if "does not fit" in note]
    assert [
        line.split(" = ")[0] for line in proposed.text.split("\n") if line.split(" = ")[0] in stages
    ] == stages
    x = normal_noise(channels, 4_000, seed=4)
    (y,) = recipe_model(write_recipe(tmp_path, proposed.text)).run(x).values()
    one = recipe_model(write_recipe(tmp_path, propose_recipe([tmp_path / "alone.onnx"], tmp_path).text))
    expected = np.concatenate([output for row in x for output in one.run(row[None]).values()])
    np.testing.assert_allclose(y.reshape(expected.shape), expected, atol=1e-5)


def test_an_axis_of_two_is_noted_as_possibly_channels(tmp_path: Path) -> None:
    size = [1, 2, 257, "T"]
    save_model(tmp_path, "model.onnx", models.build([node("Neg", "x", "y")], {"x": size}, {"y": size}))
    notes = propose_recipe([tmp_path / "model.onnx"], tmp_path).notes
    assert any(note.endswith("if it is two channels of magnitudes, give channels=2") for note in notes)
    with pytest.raises(pulse.PulseError, match="of a usual size, with 3 channels on its second axis"):
        propose_recipe([tmp_path / "model.onnx"], tmp_path, channels=3)
    with pytest.raises(pulse.PulseError, match="channels=2 is for one model"):
        propose_recipe([tmp_path / "model.onnx"] * 2, tmp_path, channels=2)


def test_a_second_spectrum_is_noted_as_possibly_a_second_signal(tmp_path: Path) -> None:
    """The second one of an echo canceller may be that of a second signal: reported, not guessed."""
    size = [1, 257, "T", 2]
    model = models.build([node("Sub", "mic far", "y")], {"mic": size, "far": size}, {"y": size})
    save_model(tmp_path, "aec.onnx", model)
    notes = propose_recipe([tmp_path / "aec.onnx"], tmp_path).notes
    assert any(note.startswith("far has the shape of mic: if it is a second signal") for note in notes)


@pytest.mark.parametrize(("shape", "stages"), [([1, 512], ["squeeze", "unsqueeze"]), ([1, 1, 512], [])])
def test_calls_that_take_overlapping_frames_get_their_hop(
    tmp_path: Path, shape: list[int], stages: list[str]
) -> None:
    """A call with equal sizes is a frame if there is a hop; otherwise its samples are new, which is reported."""
    state = [1] * len(shape)
    nodes = [node("Add", "x h", "y"), node("ReduceMean", "y", "hn", axes=[-1])]
    sizes = {"x": shape, "h": state}, {"y": shape, "hn": state}
    save_model(tmp_path, "calls.onnx", models.build(nodes, *sizes))
    proposed = propose_recipe([tmp_path / "calls.onnx"], tmp_path)
    if stages:
        assert "frames" not in proposed.text
        assert any("as in hop=128" in note for note in proposed.notes)
    proposed = propose_recipe([tmp_path / "calls.onnx"], tmp_path, hop=100)
    kinds = [
        stage.kind for stage in parse_recipe(proposed.text, RecipeContext.of(tmp_path / "recipe.toml")).stages
    ]
    assert kinds == ["frames", *stages[:1], "model", *stages[1:], "overlap_add"]
    assert proposed.text.count("size = 512, hop = 100") == 2
    x = normal_noise(1, 2000, seed=2)
    (output,) = recipe_model(write_recipe(tmp_path, proposed.text)).run(x).values()
    padded, expected, h = np.pad(x[0], (412, 412)), np.zeros(2000 + 2 * 412, np.float64), 0.0
    for start in range(0, 2001, 100):
        frame = padded[start : start + 512] + h
        h = frame.mean()
        expected[start : start + len(frame)] += frame
    assert output.shape[1] > 1000
    np.testing.assert_allclose(output[0], expected[: output.shape[1]], atol=1e-4)


def test_a_hop_that_is_known_is_not_guessed(tmp_path: Path) -> None:
    size: list[int | str] = [1, 257, "T", 2]
    save_model(tmp_path, "model.onnx", models.build([node("Neg", "x", "y")], {"x": size}, {"y": size}))
    proposed = propose_recipe([tmp_path / "model.onnx"], tmp_path, hop=128)
    assert proposed.text.count("n_fft = 512, hop = 128") == 2
    assert any(note.endswith("the root of a Hann window is a guess") for note in proposed.notes)


def test_the_proposal_for_dtln_is_the_recipe_of_the_page(tmp_path: Path) -> None:
    """DTLN's folder and its hop give the recipe of the page."""
    (tmp_path / "dtln_saved_model").symlink_to(shared_path("tensorflow") / "dtln_saved_model")
    proposed = propose_recipe([tmp_path / "dtln_saved_model"], tmp_path, hop=128)
    assert proposed.text.partition("rate = ")[2] == recipes()["dtln_saved_model.toml"].partition("rate = ")[2]


def test_forty_bands_of_codes_get_a_micro_frontend(tmp_path: Path) -> None:
    """Forty bands as codes: microWakeWord's front end, the file's own scales around the model, and it opens."""
    graph = SubgraphBuilder()
    x = graph.input((1, -1, 40), "int8", scale=[0.25], zero=[-128])
    graph.outputs = [graph.result("LOGISTIC", [x], (1, -1, 40), "", 2, "int8", (1 / 256, -128))]
    path = tmp_path / "word.tflite"
    path.write_bytes(written_tflite(graph))
    proposed = propose_recipe([path], tmp_path)
    stages = [
        "micro_frontend = {}",
        'quantize = { scale = 0.25, zero = -128, type = "int8" }',
        'model = "word.tflite"',
        'dequantize = { scale = 0.00390625, zero = -128, type = "int8" }',
    ]
    places = [proposed.text.index(stage) for stage in stages]
    assert places == sorted(places)
    assert not [note for note in proposed.notes if "does not fit" in note]
    values = next(
        iter(recipe_model(write_recipe(tmp_path, proposed.text)).run(normal_noise(1, 4_000, seed=4)).values())
    )
    assert 0 <= values.min() < values.max() <= 1
