"""Recipes in the metadata of ONNX files: opened as the recipe, checked as one, and no way out of the folder."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import pulse
from pulse.loading.onnx_files import read_onnx
from pulse.metadata import RECIPE
from pulse.onnx.read.metadata_entries import stored_values
from pulse.recipes.embedding import embed_recipe, require_opens
from pulse.recipes.reading import MAX_FILE_BYTES
from pulse.recipes.recipe import RecipeContext
from pulse.recipes.recipe_model import recipe_model
from streaming import Session
from tests.noise import normal_noise
from tests.pulse.chunks.models import Array
from tests.pulse.recipes.recipe_files import (
    MASKED,
    SPECTRAL,
    gain,
    mask_model,
    refusal_of,
    save_model,
    spectral,
    write_masked,
    write_recipe,
)

ITSELF = SPECTRAL.replace("gain.onnx", ".")


def with_recipes(model: onnx.ModelProto, *texts: str | bytes) -> onnx.ModelProto:
    """A model with recipes in its metadata."""
    for text in texts:
        model.metadata_props.add(key=RECIPE, value=text if isinstance(text, str) else "?" * len(text))
    return model


def open_and_push(source: "str | Path | bytes | onnx.ModelProto", x: Array) -> Array:
    """Return the whole output of a session."""
    session = Session(pulse.stream(source))
    (ready,), (rest,) = session.push(x).values(), session.flush().values()
    return np.concatenate([ready, rest], 1)


def message_of(folder: Path, *texts: str | bytes) -> str:
    """The message of a model whose recipes are wrong."""
    path = save_model(folder, "model.onnx", with_recipes(gain(), *texts))
    for text in texts:
        if isinstance(text, bytes):
            path.write_bytes(path.read_bytes().replace(b"?" * len(text), text))
    message = refusal_of(path)
    assert message.startswith("the recipe in its metadata")
    return message


def test_every_call_opens_it_as_the_recipe(tmp_path: Path) -> None:
    """A path, bytes and a ModelProto; stream, verify, chain and a stage of another recipe. Loading reads the graph."""
    x = normal_noise(1, 203)
    (expected,) = recipe_model(spectral(tmp_path)).run(x).values()
    model = with_recipes(gain(), ITSELF)
    path = save_model(tmp_path, "whole.onnx", model)
    for source in (path, str(path), path.read_bytes(), model):
        np.testing.assert_allclose(open_and_push(source, x), expected, 1e-4, 1e-5)
        assert pulse.verify(source).equal
    program = pulse.stream(path)
    assert (program.model.title, program.model.typed.metadata) == ("whole", {"sample_rate": "8000"})
    (output,) = pulse.chain(path).run(x).values()
    np.testing.assert_array_equal(output, expected)
    (output,) = recipe_model(write_recipe(tmp_path, '[[stage]]\nmodel = "whole.onnx"')).run(x).values()
    np.testing.assert_array_equal(output, expected)
    assert list(read_onnx(path).inputs) == ["mix"]
    again = pulse.load(pulse.load(path).analyse().pulsify().to_onnx())
    assert RECIPE not in again.metadata, "pulses of the bare model are no recipe"


def test_states_of_an_embedded_stage_are_those_of_the_file(tmp_path: Path) -> None:
    """The keys of the stage about its states go to the file itself."""
    x = normal_noise(1, 203)
    (expected,) = recipe_model(write_masked(tmp_path)).run(x).values()
    path = save_model(tmp_path, "whole.onnx", with_recipes(mask_model(), MASKED.replace("masking.onnx", ".")))
    np.testing.assert_allclose(open_and_push(path, x), expected, 1e-4, 1e-5)


def test_an_embedded_recipe_replaces_the_older_one(tmp_path: Path) -> None:
    """The text has the same values; other entries of the file stay, an older recipe does not."""
    model = with_recipes(gain(), "old")
    model.metadata_props.add(key="author", value="somebody")
    save_model(tmp_path, "gain.onnx", model)
    text = (
        SPECTRAL.replace('"sqrt_hann"', f"{[1.0] * 15 + [0.5]}")
        + '\n# the end\nas = { sound = "a\\u007fb" }\n'
    )
    embedded = embed_recipe(text, RecipeContext.of(write_recipe(tmp_path, text)))
    assert {entry.key for entry in embedded.metadata_props} == {"author", RECIPE}
    onnx.save(embedded, tmp_path / "whole.onnx")
    require_opens(tmp_path / "whole.onnx", tmp_path / "other.onnx")
    x = normal_noise(1, 203)
    save_model(tmp_path, "gain.onnx", gain())
    (expected,) = recipe_model(tmp_path / "recipe.toml").run(x).values()
    np.testing.assert_array_equal(next(iter(recipe_model(tmp_path / "whole.onnx").run(x).values())), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[stage]]\nlog = {}", "names no models, but a file can only contain its own recipe"),
        ('[[stage]]\nmodel = "gain.onnx"\n' * 2, "names 2 models"),
    ],
    ids=["no model", "two models"],
)
def test_a_recipe_of_another_number_of_models_is_not_embedded(
    tmp_path: Path, text: str, message: str
) -> None:
    spectral(tmp_path)
    with pytest.raises(pulse.LoadError, match=message):
        embed_recipe(text, RecipeContext.of(tmp_path / "recipe.toml"))


def test_a_model_that_was_written_in_pulses_holds_no_recipe(tmp_path: Path) -> None:
    spectral(tmp_path)
    onnx.save(pulse.stream(tmp_path / "gain.onnx").model.to_onnx(), tmp_path / "gain.onnx")
    with pytest.raises(pulse.LoadError, match="was written in pulses, so it needs no recipe"):
        embed_recipe(SPECTRAL, RecipeContext.of(tmp_path / "recipe.toml"))
    save_model(tmp_path, "both.onnx", with_recipes(onnx.load(tmp_path / "gain.onnx"), ITSELF))
    with pytest.raises(pulse.LoadError, match="was written in pulses, so it needs no recipe"):
        pulse.stream(tmp_path / "both.onnx")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", ": has no stages", id="empty"),
        pytest.param("[[stage]\n", ": not valid TOML: ", id="no TOML"),
        pytest.param(
            ITSELF.replace("rate", "ratee"),
            "unknown key 'ratee' (did you mean rate?)",
            id="misspelled key",
        ),
        pytest.param(
            ITSELF.replace("n_fft = 16", "n_fft = 32"),
            "axis 1 is 17 in one and 9 in the other",
            id="stages of different widths",
        ),
        pytest.param(
            ITSELF.replace('"."', '"model.onnx"'), "the recipe is a stage of itself", id="stage of itself"
        ),
        pytest.param(
            ITSELF.replace('"."', '"gone.onnx"'), "gone.onnx: no such file; check the path", id="no such file"
        ),
        pytest.param(
            ITSELF.replace('"."', '"../gain.onnx"'), "../gain.onnx: is outside ", id="outside, above"
        ),
        pytest.param(
            ITSELF.replace('"."', '"/gain.onnx"'), "/gain.onnx: is outside ", id="outside, absolute"
        ),
        pytest.param(
            ITSELF.replace('"."', '"out/gain.onnx"'), "out/gain.onnx: is outside ", id="in a folder"
        ),
        pytest.param(ITSELF.replace('"."', '"a\\u0000b"'), "is not a path", id="null character"),
        pytest.param(
            ITSELF + '[[stage]]\ncmvn = { path = "../cmvn.ark" }',
            "../cmvn.ark: is outside ",
            id="statistics outside",
        ),
        pytest.param(
            ITSELF.replace('"."', '"."\ninitial = { h = "../h.npy" }'),
            "../h.npy: is outside ",
            id="state outside",
        ),
        pytest.param("#" * (MAX_FILE_BYTES + 1), "too many for a recipe", id="too long"),
        pytest.param(b"rate = \xff\xfe", "is not text; the file is damaged, get it again", id="no text"),
    ],
)
def test_bad_recipes_are_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    """The checks of a file, and no name leads out of the folder, not by a link either."""
    inside = tmp_path / "inside"
    inside.mkdir()
    save_model(tmp_path, "gain.onnx", gain())
    (inside / "out").symlink_to(tmp_path)
    assert message in message_of(inside, text)


def test_two_recipes_in_a_file_are_refused(tmp_path: Path) -> None:
    assert "occurs 2 times" in message_of(tmp_path, ITSELF, ITSELF)


def test_bytes_name_no_file(tmp_path: Path) -> None:
    model = with_recipes(gain(), ITSELF.replace('"."', '"gain.onnx"')).SerializeToString()
    with pytest.raises(
        pulse.LoadError, match=r"these bytes: the recipe in its metadata: .* this recipe is not in a file"
    ):
        pulse.stream(model)


def test_a_self_contained_recipe_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(pulse.LoadError, match=r'model = "\." is the file in whose metadata a recipe is'):
        pulse.stream(write_recipe(tmp_path, ITSELF))


def test_options_of_models_are_refused(tmp_path: Path) -> None:
    """The refusal is that of a recipe in a separate file."""
    path = save_model(tmp_path, "whole.onnx", with_recipes(gain(), ITSELF))
    with pytest.raises(
        pulse.LoadError, match=r"a recipe itself describes how its models are called; omit .*states="
    ):
        pulse.load(path, chunking=pulse.Chunking(states={}))


@pytest.mark.filterwarnings("ignore:.*shapes that the file states do not hold:pulse.PulseWarning")
def test_damaged_files_give_a_named_error_or_a_model(tmp_path: Path) -> None:
    """Cut anywhere, or with any byte changed, a file gives an error of the project, or a model."""
    data = save_model(tmp_path, "whole.onnx", with_recipes(gain(), ITSELF)).read_bytes()
    rng = np.random.default_rng(0)
    start = data.index(RECIPE.encode())
    places = [*range(start - 8, start + 40), *rng.integers(0, len(data), 60)]
    broken = [data[:place] for place in places]
    broken += [data[:place] + bytes([data[place] ^ 0x81]) + data[place + 1 :] for place in places]
    for number, content in enumerate(broken):
        assert isinstance(stored_values(content, RECIPE), list)
        try:
            pulse.stream(content, backend="numpy")
        except pulse.PulseError as error:
            assert "\n" not in str(error), number
    assert stored_values(tmp_path / "none.onnx", RECIPE) == stored_values(tmp_path, RECIPE) == []
