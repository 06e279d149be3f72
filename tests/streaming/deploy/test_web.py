"""WebAssembly modules give the frames of Python, in Node.js; those in Chromium are in test_browser.py."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.program.native.native_program import NativeProgram
from tests.noise import quiet_noise
from tests.streaming.deploy.building import PULSE, build, compile_program
from tests.streaming.deploy.node import require_tools, run_node
from tests.streaming.deploy.sound import RATE_HZ, delay_and_output
from tests.streaming.models import channel_filter_model

CLOSE = 1e-6


@pytest.fixture(scope="module")
def folder(program: NativeProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_tools()
    path = tmp_path_factory.mktemp("web")
    library = build(program, path, "wasm32", rate_hz=RATE_HZ)
    assert library.outcome.endswith("all within the tolerance")
    return path


def test_a_wrong_vector_is_reported(folder: Path, tmp_path: Path) -> None:
    """The check of the folder finds a frame that is not as expected, and a vector that ends too early."""
    for name in ("module.wasm", "worklet.js", "test/check.mjs", "test/vector.bin"):
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((folder / name).read_bytes())
    vector = bytearray((folder / "test" / "vector.bin").read_bytes())
    first_input, first_output = 24, 24 + 4 * PULSE
    frame = np.frombuffer(vector, "<f4", PULSE, first_output)[-1]
    vector[first_output + 4 * PULSE - 4 : first_output + 4 * PULSE] = np.float32(frame + 1).tobytes()
    assert len(vector) > first_input
    for content, reason in ((vector, "y, pulse 0, element 15"), (vector[:60], "the vector is cut short")):
        (tmp_path / "test" / "vector.bin").write_bytes(content)
        process = subprocess.run(
            ["node", str(tmp_path / "test" / "check.mjs")], capture_output=True, text=True
        )
        assert process.returncode == 1
        assert reason in process.stderr


@pytest.mark.parametrize("rate_hz", [RATE_HZ, 48_000, 44_100])
def test_blocks_of_a_worklet_have_the_reported_delay(
    folder: Path, program: NativeProgram, tmp_path: Path, rate_hz: int
) -> None:
    """Blocks of 128 frames, as browsers have them; the delay is the reported one."""
    sound = quiet_noise(4000)
    delay, expected = delay_and_output(program, sound, rate_hz, 128)
    output, printed = run_node(
        f"const rate = {rate_hz};"
        """
        const sound = new Sound(module, rate), result = new Float32Array(heard.length);
        let pulses = 0;
        const count = (one) => (pulses += one.frames().length);
        for (let start = 0; start < heard.length; start += 128) {
          const end = Math.min(start + 128, heard.length);
          sound.process([heard.subarray(start, end)], [result.subarray(start, end)], end - start, count);
        }
        writeFileSync(made, result);
        console.log(JSON.stringify({ delay: sound.delay, pulses, ...sound.counters() }));
        """,
        folder,
        tmp_path,
        sound.tobytes(),
    )
    figures = json.loads(printed)
    assert figures["delay"] == delay
    assert (figures["badSamples"], figures["badPulses"]) == (0, 0)
    assert np.abs(np.frombuffer(output, np.float32) - expected).max() < CLOSE
    pulses = len(sound) * RATE_HZ // rate_hz // PULSE
    assert abs(figures["pulses"] - pulses) <= 4  # the output ``loud``, which is not the sound that is played


def test_a_reset_begins_the_sound_again_and_bypass_delays_it(folder: Path, tmp_path: Path) -> None:
    sound = quiet_noise(2000)
    output, printed = run_node(
        """
        const sound = new Sound(module, 16000), run = () => {
          const result = new Float32Array(heard.length);
          sound.process([heard], [result], heard.length);
          return result;
        };
        const first = run();
        sound.reset();
        const again = run();
        sound.bypass(true);
        sound.reset();
        writeFileSync(made, run());
        sound.process([undefined], undefined, 128);
        console.log(JSON.stringify({ same: first.every((frame, i) => frame === again[i]), delay: sound.delay }));
        """,
        folder,
        tmp_path,
        sound.tobytes(),
    )
    figures = json.loads(printed)
    assert figures["same"]
    through = np.concatenate([np.zeros(figures["delay"], np.float32), sound])[: len(sound)]
    assert np.array_equal(np.frombuffer(output, np.float32), through)


def test_snapshots_of_javascript_agree_with_python(
    folder: Path, program: NativeProgram, tmp_path: Path
) -> None:
    """Snapshots are exchanged with Python; a step after the end raises an error with a way out."""
    sound = quiet_noise(2 * PULSE)
    state = program.spawn()
    state.step(sound[None, :PULSE])
    snapshot, printed = run_node(
        """
        const model = new Model(module), said = [];
        const attempt = (action) => { try { action(); } catch (error) { said.push(error.message); } };
        model.step([heard.subarray(0, 16)]);
        writeFileSync(made, model.snapshot());
        attempt(() => model.step([new Float32Array(17)]));
        attempt(() => model.restore(new Uint8Array(3)));
        for (const results of model.flush([heard.subarray(16, 21)], [5])) said.push(results[0].count);
        attempt(() => model.step([heard.subarray(0, 16)]));
        attempt(() => new Sound(module, 1));
        console.log(JSON.stringify(said));
        """,
        folder,
        tmp_path,
        sound.tobytes(),
    )
    other = program.spawn()
    other.restore(snapshot)
    expected, outputs = state.step(sound[None, PULSE:]), other.step(sound[None, PULSE:])
    for name, frames in expected.items():
        np.testing.assert_allclose(outputs[name], frames, rtol=1e-6, atol=1e-7)
    messages = json.loads(printed)
    assert messages[0] == "x: a pulse has 16 elements, got 17"
    assert "bytes, got 3" in messages[1]
    assert messages[-2] == "small: the stream has ended: call reset()"
    assert messages[-1] == "1 Hz and the model's rate are more than 256 times apart; choose another rate"
    assert sum(messages[2:-2]) == PULSE + 5 - (PULSE - program.outputs[0].delay)


def test_a_model_that_takes_no_sound_has_no_page(tmp_path: Path) -> None:
    """The streams of such a model run pulse by pulse, and ``Sound`` says why it does not."""
    require_tools()
    library = build(compile_program(channel_filter_model(), 6), tmp_path, "wasm32", rate_hz=RATE_HZ)
    assert "module.wasm" in library.sizes
    assert "index.html" not in library.sizes
    _, printed = run_node(
        "try { new Sound(module, 16000); } catch (error) { console.log(error.message); }", tmp_path, tmp_path
    )
    assert printed.strip() == "small: built without sound (pulse build says why); use Model, pulse by pulse"


def test_plug_ins_are_for_processors(program: NativeProgram, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="plugin= is for processors; the target wasm32 has a page"):
        build(program, tmp_path, "wasm32", rate_hz=RATE_HZ, plugins=("lv2",))


def test_the_command_builds_a_page(tmp_path: Path) -> None:
    """``pulse build --target wasm32``: the built-in denoiser as a page."""
    require_tools()
    process = subprocess.run(
        [
            sys.executable,
            "-c",
            "from streaming.cli import main; main()",
            "build",
            "--target",
            "wasm32",
            "-o",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    assert "all within the tolerance" in process.stdout
    assert {"module.wasm", "worklet.js", "pulse.d.ts", "index.html"} <= {
        path.name for path in tmp_path.iterdir()
    }
