"""WebAssembly modules on the audio thread of a real Chromium: ``python -m pytest -m slow`` with it installed."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from bench.models.recipe_pages import lay_out_recipe
from pulse.program.program import Program
from streaming.builtin import noisy_path
from streaming.deploy.building import build_model, find_target
from streaming.deploy.function_names import identifier
from streaming.native.resample import NativeResampler
from streaming.opening.opened_model import OpenedModel
from streaming.opening.source import load_source
from tests.noise import quiet_noise
from tests.pulse.recipes.references import REFERENCES
from tests.shared import shared_path
from tests.streaming.deploy.node import require_tools
from tests.streaming.deploy.pages import open_page
from tests.streaming.deploy.sound import RATE_HZ, Sound, delay_and_output

pytestmark = pytest.mark.slow
CLOSE = 1e-5
QUANTUM = 128
Build = Callable[..., tuple[Program, Path]]

NODE = """
const { PulseNode } = await import("./worklet.js");
const started = async (context, sound) => {
  const buffer = new AudioBuffer({ length: sound.length, sampleRate: context.sampleRate });
  buffer.copyToChannel(new Float32Array(sound), 0);
  const source = new AudioBufferSourceNode(context, { buffer });
  const node = await PulseNode.create(context);
  source.connect(node).connect(context.destination);
  source.start();
  return node;
};
"""
RENDER = (
    """async ([sound, rate]) => {
"""
    + NODE
    + """
  const context = new OfflineAudioContext(1, sound.length, rate), node = await started(context, sound);
  const rendered = await context.startRendering();
  return { delay: node.delay, made: Array.from(rendered.getChannelData(0)), counters: await node.counters() };
}"""
)
RECORD = """async (seconds) => {
  const { PulseNode } = await import("./worklet.js");
  const context = new AudioContext({ sampleRate: 44100 });
  await context.suspend(); // all nodes begin with the same block
  const recorder = `registerProcessor("recorder", class extends AudioWorkletProcessor {
    process(inputs) {
      this.port.postMessage([inputs[0][0] ?? new Float32Array(128), inputs[1][0] ?? new Float32Array(128)]);
      return true;
    }
  })`;
  await context.audioWorklet.addModule(URL.createObjectURL(new Blob([recorder], { type: "text/javascript" })));
  const node = await PulseNode.create(context);
  const taken = new AudioWorkletNode(context, "recorder", {
    numberOfInputs: 2, numberOfOutputs: 1, channelCount: 1, channelCountMode: "explicit",
  });
  const parts = [];
  taken.port.onmessage = ({ data }) => parts.push(data);
  const constraints = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  const microphone = context.createMediaStreamSource(await navigator.mediaDevices.getUserMedia({ audio: constraints }));
  node.connect(taken, 0, 1).connect(context.destination);
  microphone.connect(taken, 0, 0);
  microphone.connect(node);
  await context.resume();
  let ticks = 0;
  const ticking = setInterval(() => ++ticks, 10);
  await new Promise((done) => setTimeout(done, 1000 * seconds));
  clearInterval(ticking);
  const counters = await node.counters();
  await context.close();
  const joined = (side) => parts.flatMap((part) => Array.from(part[side]));
  return { delay: node.delay, rate: context.sampleRate, counters, ticks, heard: joined(0), made: joined(1) };
}"""
BLOCKS = """async ([sound, rate, rounds]) => {
  const code = `import { Sound } from "${new URL("worklet.js", location.href)}";
    onmessage = ({ data: [module, given, rate, rounds] }) => {
      const sound = new Sound(module, rate), input = new Float32Array(given), took = [], made = [];
      const { memory } = sound.instance.exports, bytes = memory.buffer.byteLength;
      let maxPulses = 0;
      for (let round = 0; round < rounds; ++round) {
        const output = new Float32Array(input.length);
        sound.reset();
        for (let start = 0; start < input.length; start += 128) {
          const block = [input.subarray(start, start + 128)], places = [output.subarray(start, start + 128)];
          let pulses = 0;
          const began = performance.now();
          sound.process(block, places, 128, () => ++pulses);
          took.push(performance.now() - began);
          maxPulses = Math.max(maxPulses, pulses);
        }
        made.push(output);
      }
      took.sort((a, b) => a - b);
      const part = (share) => Math.round(1000 * took[Math.floor(share * took.length)]);
      postMessage({
        maxPulses, grown: memory.buffer.byteLength - bytes,
        loudest: made[0].reduce((a, b) => Math.max(a, Math.abs(b)), 0),
        same: made.every((output) => output.every((value, at) => Object.is(value, made[0][at]))),
        p50_us: part(0.5), p99_us: part(0.99),
      });
    };`;
  const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })), { type: "module" });
  const module = await WebAssembly.compile(await (await fetch("module.wasm")).arrayBuffer());
  worker.postMessage([module, sound, rate, rounds]);
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (error) => reject(new Error(error.message));
  });
}"""
CHECK = """async () => {
  const { Model } = await import("./worklet.js"), { check } = await import("./test/check.mjs");
  const bytes = async (name) => (await fetch(name)).arrayBuffer();
  return check(new Model(await WebAssembly.compile(await bytes("module.wasm"))), await bytes("test/vector.bin"));
}"""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build a model for browsers: the built-in one (``denoise``) or a recipe of the documents."""
    require_tools()

    def make(name: str, external: bool = False) -> tuple[Program, Path]:
        folder = tmp_path_factory.mktemp("browser")
        path = None if name == "denoise" else lay_out_recipe(name, folder, shared_path("models").parent)
        model = OpenedModel.of(load_source(path), RATE_HZ if path is None else None)
        program = model.compile()
        out = folder / "out"
        target = find_target("wasm32")
        build_model(
            model, program, identifier(model.title), target, out, checks=False, external_weights=external
        )
        return program, out

    return make


def test_weights_next_to_the_module_give_the_same_sound(denoiser: tuple[Program, Path], build: Build) -> None:
    """The page fetches the weights and plays the output of a module that includes them."""
    sound = quiet_noise(RATE_HZ // 4).tolist()
    _, external = build("denoise", True)
    assert (external / "denoise.weights").stat().st_size > 10_000
    outputs: list[Any] = []
    for folder in (denoiser[1], external):
        with open_page(folder) as page:
            outputs.append(page.evaluate(RENDER, [sound, RATE_HZ])["made"])
    assert outputs[0] == outputs[1]
    assert any(outputs[0])


@pytest.fixture(scope="module")
def denoiser(build: Build) -> tuple[Program, Path]:
    return build("denoise")


@pytest.mark.parametrize("rate_hz", [RATE_HZ, 48_000, 44_100])
def test_an_offline_context_renders_the_sound_of_python(denoiser: tuple[Program, Path], rate_hz: int) -> None:
    program, folder = denoiser
    sound = quiet_noise(rate_hz // 2)
    with open_page(folder) as page:
        rendered = page.evaluate(RENDER, [sound.tolist(), rate_hz])
    delay, expected = delay_and_output(program, sound, rate_hz, QUANTUM)
    assert rendered["delay"] == delay
    assert np.abs(np.array(rendered["made"], np.float32) - expected).max() < CLOSE
    assert rendered["counters"]["badSamples"] == rendered["counters"]["badPulses"] == 0


def place_of(pattern: Sound, inside: Sound) -> int:
    """The offset of a part in a repeating signal."""
    spectrum = np.fft.rfft(inside) * np.fft.rfft(pattern, len(inside)).conj()
    return int(np.argmax(np.fft.irfft(spectrum, len(inside))))


def test_sound_of_a_microphone_is_played_at_the_reported_delay(
    denoiser: tuple[Program, Path], tmp_path: Path
) -> None:
    """The page takes a file as its microphone and plays the output that Python computes."""
    program, folder = denoiser
    rate_hz = 44_100
    speech, _ = soundfile.read(noisy_path(), dtype="float32")
    file = NativeResampler(RATE_HZ, rate_hz).process(np.asarray(speech, np.float32))[: 3 * rate_hz]
    soundfile.write(tmp_path / "microphone.wav", file, rate_hz, subtype="PCM_16")
    file = np.asarray(soundfile.read(tmp_path / "microphone.wav", dtype="float32")[0], np.float32)
    with open_page(folder, tmp_path / "microphone.wav") as page:
        recorded = page.evaluate(RECORD, 4)
    assert recorded["rate"] == rate_hz
    print({name: recorded[name] for name in ("delay", "counters", "ticks")})
    microphone, output = (np.array(recorded[name], np.float32) for name in ("heard", "made"))
    loudest = int(np.argmax(np.abs(microphone)))
    start = min(max(0, loudest - 2048), len(microphone) - 4096)
    piece = microphone[start : start + 4096]
    place = place_of(piece, file)
    repeated = np.resize(np.roll(file, -place), len(piece))
    assert np.abs(piece).max() > 0.01
    assert np.abs(piece - repeated).max() < 1e-4
    delay, expected = delay_and_output(program, microphone, rate_hz, QUANTUM)
    assert recorded["delay"] == delay
    assert np.abs(expected).max() > 0.005
    assert np.abs(output - expected).max() < CLOSE
    assert recorded["ticks"] > 100  # of 400: the page's own thread continues


@pytest.mark.parametrize("name", ["denoise", "gtcrn.toml"])
@pytest.mark.parametrize("rate_hz", [48_000, 44_100])
def test_the_work_of_a_block_is_bounded(build: Build, name: str, rate_hz: int) -> None:
    """A block runs no more pulses than fit into it and takes no memory, and a stream after ``reset`` has the same bits.

    The times of blocks are printed. They depend on the machine and on what else runs there, so nothing bounds them.
    """
    program, folder = build(name)
    with open_page(folder, isolated=True) as page:
        figures = page.evaluate(BLOCKS, [quiet_noise(900 * QUANTUM).tolist(), rate_hz, 3])
    print(name, rate_hz, figures)
    frames_of_block = math.ceil(QUANTUM * RATE_HZ / rate_hz)
    assert figures["maxPulses"] == math.ceil(frames_of_block / program.pulse)
    assert figures["grown"] == 0
    assert figures["same"]
    assert figures["loudest"] > 0.001


@pytest.mark.parametrize("name", REFERENCES)
def test_recipes_pass_their_test_vector(build: Build, name: str) -> None:
    """The test vector, flush included: each frame within the tolerance of the offline model."""
    _, folder = build(name)
    with open_page(folder) as page:
        figures: dict[str, Any] = page.evaluate(CHECK)
    print(name, json.dumps(figures))
    assert figures["judged"]
    assert figures["all"] > 0
