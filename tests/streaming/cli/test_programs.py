"""``pulse compile``, and other commands on the programs that it writes."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pulse.api import load
from pulse.errors import LoadError
from pulse.program.file.container import encode, open_container
from streaming.builtin import noisy_path
from tests.streaming.command import pulse, refusal, report

pytestmark = pytest.mark.usefixtures("working_folder")

PROGRAM = "denoise.pulse"


@pytest.fixture(scope="module")
def program_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The built-in model as a program."""
    path = tmp_path_factory.mktemp("compiled") / PROGRAM
    pulse("compile", "-o", path, "--length", "500")
    return path.read_bytes()


@pytest.fixture
def program(working_folder: None, program_bytes: bytes) -> str:
    Path(PROGRAM).write_bytes(program_bytes)
    return PROGRAM


def test_the_written_program_is_proved_and_runs(tmp_path: Path, program: str) -> None:
    assert [path.name for path in tmp_path.iterdir()] == [program]
    pulse("run", noisy_path(), "first.wav")
    pulse("run", program, noisy_path(), "second.wav")
    np.testing.assert_array_equal(*(soundfile.read(name)[0] for name in ("first.wav", "second.wav")))
    text = pulse("check", program).stdout
    assert "of the file" in text
    assert "equal: every frame of every stream" in text
    assert "the file does not contain the model" in text
    assert "16000 Hz" in text
    proof = report("check", program)["proof"]
    assert proof["outcome"] == "equal"
    assert proof["longest"] == 500
    assert proof["share"] <= 1


def test_the_other_commands_take_a_program(program: str) -> None:
    assert report("bench", program, "--steps", "5", "--rounds", "1")["profile"]
    assert pulse("dump", program, "--stage", "program").stdout.startswith("32 instructions")
    soundfile.write("in.wav", soundfile.read(noisy_path(), dtype="int16")[0][:8000], 16000)
    pulse("run", program, "in.wav", "out.wav", "--live")
    assert soundfile.info("out.wav").frames >= 8000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["convert", PROGRAM], "is a program"),
        (["dump", PROGRAM], "is a program"),
        (["dump", PROGRAM, "--stage", "costs"], "is a program"),
        (["dump", PROGRAM, "--stage", "load"], "is a program"),
        (["run", PROGRAM, noisy_path(), "o.wav", "--pulse", "320"], "omit --pulse 320"),
        (["bench", PROGRAM, "--weights", "int8"], "omit --weights int8"),
        (["run", PROGRAM, noisy_path(), "o.wav", "--keep", "y"], "fixed: omit --keep, or compile the model"),
        (["compile", PROGRAM], "is already a program"),
        (["compile", "-o", "denoise.onnx"], "written as .pulse"),
        (["compile", "--min-gain", "1.2"], "--min-gain 1.2: give --specialise too"),
        (["compile", "--specialise", "--min-gain", "0.5"], "minimum speed-up"),
    ],
    ids=[
        "convert",
        "dump",
        "dump --stage costs",
        "dump --stage load",
        "run --pulse",
        "bench --weights",
        "run --keep",
        "compile a program",
        "compile -o denoise.onnx",
        "compile --min-gain",
        "compile with a small gain",
    ],
)
@pytest.mark.usefixtures("program")
def test_unsupported_uses_of_a_program_are_refused(arguments: list[object], words: str) -> None:
    assert words in refusal(*arguments)


def test_model_options_are_refused_for_a_program_as_by_load(program: str) -> None:
    message = "is a program; the options for reading its model are fixed"
    with pytest.raises(LoadError, match=message):
        load(program, symbol="T")
    assert message in refusal("run", program, "x.npy", "--symbol", "T")


def test_nothing_is_proved_without_a_check() -> None:
    """The file says so, and ``pulse check`` fails with the matching code."""
    pulse("compile", "-o", "denoise.pulse", "--no-check")
    result = pulse("check", "denoise.pulse", code=3)
    assert "nothing was proved when it was compiled (--no-check of pulse compile)" in result.output


def test_the_effect_of_rounded_weights_is_reported() -> None:
    details = report("compile", "-o", "small.pulse", "--weights", "bf16", "--length", "500")
    assert details["weights"] == "bf16"
    assert "denoised" in details["rounding"][0]
    assert report("check", "small.pulse")["proof"]["of"] == "weights of f32"
    pulse("run", "small.pulse", noisy_path(), "out.wav")


def test_a_wrong_program_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 1 and the earlier file stays."""
    Path("out.pulse").write_text("older")

    def read_with_changed_weights(content):
        container = open_container(content)
        fields = {name: value for name, value in container.header.values.items() if name != "sections"}
        sections = {name: container.section(name).copy() for name in ("table", "initial", "notes", "weights")}
        floats = sections["weights"].view(np.float32)
        floats[np.abs(floats) > 0.5] *= 1.5
        return read(encode(fields, sections))

    from streaming.reports import compilation

    read = compilation.read_program
    monkeypatch.setattr(compilation, "read_program", read_with_changed_weights)
    result = pulse("compile", "-o", "out.pulse", "--length", "500", code=1)
    assert "out.pulse is not written" in result.output
    assert Path("out.pulse").read_text() == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["out.pulse"]


@pytest.mark.parametrize("target", ["/dev/null", "/dev/full", "folder"])
def test_a_link_to_a_device_or_a_folder_is_not_replaced(target: str) -> None:
    """The two commands refuse it alike."""
    Path("folder").mkdir()
    for command, name in (("compile", "out.pulse"), ("convert", "out.onnx")):
        Path(name).symlink_to(target)
        message = f"error: {name}: is not a file that can be replaced; give the name of a file\n"
        assert refusal(command, "-o", name) == message
        assert Path(name).is_symlink()


def test_a_recipe_is_one_file_from_sound_to_sound() -> None:
    Path("recipe.toml").write_text(
        'rate = 8000\n[[stage]]\nstft = { n_fft = 64, hop = 32, window = "sqrt_hann" }\n'
        '[[stage]]\nistft = { n_fft = 64, hop = 32, window = "sqrt_hann" }\n'
    )
    pulse("compile", "recipe.toml", "-o", "both.pulse")
    pulse("run", "recipe.toml", noisy_path(), "first.wav")
    pulse("run", "both.pulse", noisy_path(), "second.wav")
    np.testing.assert_array_equal(*(soundfile.read(name)[0] for name in ("first.wav", "second.wav")))


def test_errors_of_programs_are_json() -> None:
    Path("bad.pulse").write_bytes(b"pulse program 3\n" + bytes(100))
    result = pulse("check", "bad.pulse", "--json", code=2)
    assert "its checksum is wrong" in json.loads(result.stdout)["error"]["message"]
