"""WebAssembly modules of models whose audio has several channels: in blocks, and as a node of Web Audio."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pulse
from tests.noise import quiet_noise
from tests.streaming.channel_mixer import mixing_program, two_input_mixer
from tests.streaming.deploy.building import build
from tests.streaming.deploy.node import require_tools, run_node
from tests.streaming.deploy.sound import RATE_HZ, Sound, delay_and_output

CLOSE = 1e-6
PROGRAMS: dict[str, Callable[[], Any]] = {
    "stereo interleaved": lambda: mixing_program(2, 2, "1,T,C", 32),
    "one to three": lambda: mixing_program(1, 3, "C,T", 160),
    "two inputs": lambda: pulse.load(two_input_mixer()).compile(48, backend="numba"),
}
CHANNELS = {"stereo interleaved": [2], "one to three": [1], "two inputs": [2, 1]}
"""Of each input."""


@cache
def program_of(name: str) -> Any:
    return PROGRAMS[name]()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a model's module."""
    require_tools()

    @cache
    def make(name: str) -> Path:
        path = tmp_path_factory.mktemp("channels")
        library = build(program_of(name), path, "wasm32", rate_hz=RATE_HZ)
        assert library.outcome.endswith("all within the tolerance")
        assert "index.html" in library.sizes
        (path / "package.json").write_text('{"type": "module"}')  # for Node.js
        return path

    return make


ALL = pytest.mark.parametrize("name", PROGRAMS)


def noise(name: str, frames: int) -> Sound:
    """Audio for all inputs of a model, [frames, channels]."""
    return np.stack([quiet_noise(frames, seed) for seed in range(sum(CHANNELS[name]))], axis=1)


CHANNEL_ARRAYS = """
const channelsOf = (array, count) =>
  Array.from({ length: count }, (_, n) => array.subarray((n * array.length) / count, ((n + 1) * array.length) / count));
"""


@ALL
@pytest.mark.parametrize("rate_hz", [RATE_HZ, 48_000, 44_100])
def test_blocks_of_all_channels_agree_with_python(
    folder: Callable[[str], Path], tmp_path: Path, name: str, rate_hz: int
) -> None:
    """Blocks of 128 frames, and one that is longer than the module's largest."""
    sound = noise(name, 3008)
    delay, expected = delay_and_output(program_of(name), sound, rate_hz, 128)
    output, printed = run_node(
        f"const rate = {rate_hz}, inputs = {sound.shape[1]};{CHANNEL_ARRAYS}"
        """
        const sound = new Sound(module, rate), sources = channelsOf(heard, inputs), frames = sources[0].length;
        const result = new Float32Array(sound.outputChannels * frames);
        const targets = channelsOf(result, sound.outputChannels);
        for (let start = 0; start < frames; start += 128) {
          const end = Math.min(start + 128, frames), block = (array) => array.subarray(start, end);
          sound.process(sources.map(block), targets.map(block), end - start);
        }
        writeFileSync(made, result);
        sound.reset();
        const whole = channelsOf(new Float32Array(result.length), targets.length);
        sound.process(sources, whole, frames);
        const same = whole.every((array, n) => array.every((frame, k) => frame === targets[n][k]));
        console.log(JSON.stringify({ delay: sound.delay, channels: sound.inputChannels, same, ...sound.counters() }));
        """,
        folder(name),
        tmp_path,
        sound.T.tobytes(),
    )
    assert json.loads(printed) == {
        "delay": delay,
        "channels": CHANNELS[name],
        "same": True,
        "badSamples": 0,
        "badPulses": 0,
    }
    channels = np.frombuffer(output, np.float32).reshape(-1, len(sound)).T
    assert np.abs(channels - expected.reshape(channels.shape)).max() < CLOSE


AUDIO_THREAD = """
globalThis.sampleRate = 48000;
globalThis.currentFrame = 0;
globalThis.AudioWorkletProcessor = class {
  port = { postMessage: (message) => posted.push(message) };
};
globalThis.registerProcessor = (name, kind) => (Processor = kind);
globalThis.AudioWorkletNode = class {
  constructor(context, name, options) {
    Object.assign(this, options);
    this.port = {};
    queueMicrotask(() => this.port.onmessage({ data: { type: "ready", delay: 7 } }));
  }
};
globalThis.fetch = async (url) => ({ ok: true, arrayBuffer: async () => readFileSync(new URL(url)) });
let Processor;
const posted = [];
const { PulseNode } = await import(`file://${folder}/worklet.js`);
"""
"""What the script needs of a browser's audio thread, and a node that keeps its options."""


@ALL
def test_a_processor_plays_all_channels(folder: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    """The node's inputs are those of the model; an input without a connection is silent."""
    sound = noise(name, 1280)
    sound[640:, CHANNELS[name][0] :] = 0
    expected = delay_and_output(program_of(name), sound, 48_000, 128)[1]
    output, _ = run_node(
        f"const inputs = {CHANNELS[name]}, channels = {expected.reshape(len(sound), -1).shape[1]};"
        + CHANNEL_ARRAYS
        + AUDIO_THREAD
        + """
        const processor = new Processor({ processorOptions: { module } });
        const sources = channelsOf(heard, inputs.reduce((a, b) => a + b)), frames = sources[0].length;
        const result = new Float32Array(channels * frames), targets = channelsOf(result, channels);
        for (let start = 0; start < frames; start += 128) {
          const block = (array) => array.subarray(start, start + 128);
          let first = 0;
          const connected = inputs.map((count, number) => {
            first += count;
            return number && start >= 640 ? [] : sources.slice(first - count, first).map(block);
          });
          globalThis.currentFrame = start;
          if (!processor.process(connected, [targets.map(block)], { bypass: [0] })) throw new Error("it stopped");
        }
        writeFileSync(made, result);
        """,
        folder(name),
        tmp_path,
        sound.T.tobytes(),
    )
    channels = np.frombuffer(output, np.float32).reshape(-1, len(sound)).T
    assert np.abs(channels).max() > 0.05
    assert np.abs(channels - expected.reshape(channels.shape)).max() < CLOSE


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("stereo interleaved", [1, [2], 2, "speakers"]),
        ("one to three", [1, [3], 1, "speakers"]),
        ("two inputs", [2, [3], 2, "speakers"]),
    ],
)
def test_a_node_has_the_channels_of_the_model(
    folder: Callable[[str], Path], tmp_path: Path, name: str, options: list[Any]
) -> None:
    _, printed = run_node(
        AUDIO_THREAD
        + """
        const node = await PulseNode.create({ audioWorklet: { addModule: async () => undefined } });
        const { numberOfInputs, numberOfOutputs, outputChannelCount, channelCount, channelCountMode } = node;
        if (numberOfOutputs !== 1 || channelCountMode !== "explicit" || node.delay !== 7) throw new Error("wrong");
        console.log(JSON.stringify([numberOfInputs, outputChannelCount, channelCount, node.channelInterpretation]));
        """,
        folder(name),
        tmp_path,
    )
    assert json.loads(printed) == options
