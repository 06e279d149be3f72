"""Plug-ins of models whose audio has several channels give the frames of Python, channel by channel."""

import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
import soundfile

import pulse
from tests.noise import quiet_noise
from tests.streaming.channel_mixer import mixing_program, stereo_separator, two_input_mixer
from tests.streaming.deploy.building import HERE, build
from tests.streaming.deploy.hosts import Begin, begin_clap, begin_ladspa, blocks, both_hosts
from tests.streaming.deploy.pipewire import positions, run_pipewire
from tests.streaming.deploy.sound import RATE_HZ, Sound, delay_and_output
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(HERE is None, reason="no level for this system")
CLOSE = 1e-6
FADE = RATE_HZ // 100

PROGRAMS: dict[str, Callable[[], Any]] = {
    "stereo": lambda: mixing_program(2, 2, "1,C,T", 32),
    "stereo interleaved": lambda: mixing_program(2, 2, "1,T,C", 32),
    "one to three": lambda: mixing_program(1, 3, "C,T", 160),
    "three to one": lambda: mixing_program(3, 1, "T,C", 80),
    "two inputs": lambda: pulse.load(two_input_mixer()).compile(48, backend="numba"),
    "two inputs interleaved": lambda: pulse.load(two_input_mixer("1,T,C")).compile(48, backend="numba"),
    "sources": lambda: pulse.load(stereo_separator(False)).compile(64, backend="numba"),
    "sources and mix": lambda: pulse.load(stereo_separator(True)).compile(64, backend="numba"),
}
INPUT_CHANNELS = {
    "stereo": 2,
    "stereo interleaved": 2,
    "one to three": 1,
    "sources": 2,
    "sources and mix": 2,
}
"""Of the others, three."""


@cache
def program_of(name: str) -> Any:
    return PROGRAMS[name]()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a model's plug-ins."""

    @cache
    def make(name: str) -> Path:
        path = tmp_path_factory.mktemp("channels")
        library = build(program_of(name), path, rate_hz=RATE_HZ, plugins=("ladspa", "lv2", "clap"))
        assert library.outcome.endswith("all within the tolerance")
        return path

    return make


ALL = pytest.mark.parametrize("name", PROGRAMS)


def noise(name: str, frames: int) -> Sound:
    """Audio for all inputs of a model, [frames, channels]."""
    return np.stack([quiet_noise(frames, seed) for seed in range(INPUT_CHANNELS.get(name, 3))], axis=1)


@both_hosts
@ALL
@pytest.mark.parametrize(
    "rate_hz",
    [RATE_HZ, 44_100, *(pytest.param(rate_hz, marks=pytest.mark.slow) for rate_hz in (48_000, 8_000))],
)
def test_all_channels_agree_with_python(
    folder: Callable[[str], Path], begin: Begin, name: str, rate_hz: int
) -> None:
    """Blocks are computed in place, and into the arrays of the input channels in another order."""
    sound = noise(name, 4000)
    delay, expected = delay_and_output(program_of(name), sound, rate_hz, 1)
    for turned in (False, True):
        plugin = begin(folder(name), rate_hz)
        output = np.concatenate([plugin.run(block, False, turned) for block in blocks(sound)])
        assert plugin.delay == delay
        assert output.shape == expected.shape
        assert np.abs(output - expected).max() < CLOSE
        plugin.close()


@both_hosts
@ALL
def test_reset_starts_all_channels_again(folder: Callable[[str], Path], begin: Begin, name: str) -> None:
    sound, plugin = noise(name, 700), begin(folder(name), 48_000)
    first = plugin.run(sound)
    assert not np.array_equal(plugin.run(sound), first)
    plugin.reset()
    assert np.array_equal(plugin.run(sound), first)
    plugin.close()


DRY = {
    "stereo": [0, 1],
    "stereo interleaved": [0, 1],
    "one to three": [0, 0, 0],
    "three to one": [0],
    "two inputs": [0, 1, 1],
    "two inputs interleaved": [0, 1, 1],
    "sources": [0, 1, 1, 1],
    "sources and mix": [0, 1],
}
"""The input channel that bypass plays on each output channel."""


@both_hosts
@ALL
def test_bypass_plays_channels_of_the_first_input(
    folder: Callable[[str], Path], begin: Begin, name: str
) -> None:
    """The last channel is repeated, and each is as late as the model's output, with which it is cross-faded."""
    sound, plugin = noise(name, 3000), begin(folder(name), RATE_HZ)
    delay, expected = delay_and_output(program_of(name), sound, RATE_HZ, 1)
    through = np.pad(sound[:, DRY[name]], ((delay, 0), (0, 0)))[: len(sound)].reshape(expected.shape)
    parts = [plugin.run(sound[:500]), plugin.run(sound[500:2000], True), plugin.run(sound[2000:], False)]
    output = np.concatenate(parts)
    assert np.abs(output[:500] - expected[:500]).max() < CLOSE
    assert np.array_equal(output[500 + FADE : 2000], through[500 + FADE : 2000])
    assert np.abs(output[2000 + FADE :] - expected[2000 + FADE :]).max() < CLOSE
    low, high = np.minimum(through, expected) - CLOSE, np.maximum(through, expected) + CLOSE
    assert ((low <= output) & (output <= high)).all()
    plugin.close()


@both_hosts
@pytest.mark.parametrize("name", ["stereo", "stereo interleaved", "two inputs interleaved"])
def test_channels_are_silent_before_they_begin(
    folder: Callable[[str], Path], begin: Begin, name: str
) -> None:
    """A filter makes frames before the first one from the input; they are not played."""
    delay = delay_and_output(program_of(name), noise(name, 1), RATE_HZ, 1)[0]
    plugin = begin(folder(name), RATE_HZ)
    output = plugin.run(np.ones_like(noise(name, 400)))
    assert not output[:delay].any()
    assert output[delay].all()
    plugin.close()


@pytest.mark.parametrize("name", ["stereo", "stereo interleaved"])
def test_nan_in_one_channel_counts_as_zero(folder: Callable[[str], Path], name: str) -> None:
    sound, plugin = noise(name, 900), begin_ladspa(folder(name), RATE_HZ)
    broken = sound.copy()
    broken[[5, 300, 301], 1] = np.nan, np.inf, -np.inf
    sound[[5, 300, 301], 1] = 0
    expected = delay_and_output(program_of(name), sound, RATE_HZ, 1)[1]
    assert np.abs(plugin.run(broken) - expected).max() < CLOSE
    plugin.close()


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("stereo", ["Input x:0", "Input x:1", "Output y:0", "Output y:1"]),
        ("one to three", ["Input", "Output y:0", "Output y:1", "Output y:2"]),
        ("three to one", ["Input x:0", "Input x:1", "Input x:2", "Output"]),
        ("two inputs", ["Input mic:0", "Input mic:1", "Input far", "Output y:0", "Output y:1", "Output y:2"]),
        ("sources and mix", ["Input x:0", "Input x:1", "Output mix:0", "Output mix:1"]),
    ],
)
def test_each_channel_is_a_port(folder: Callable[[str], Path], name: str, names: list[str]) -> None:
    """LADSPA and LV2 have a port for each channel, by the model's names."""
    plugin = begin_ladspa(folder(name), RATE_HZ)
    assert plugin.names == [*names, "Bypass", "latency"]
    plugin.close()
    text = (folder(name) / "lv2" / "small.lv2" / "small.ttl").read_text()
    ports = [part.split("]")[0] for part in text.split("[\n")[1:]]
    assert [int(part.split("lv2:index ")[1].split()[0]) for part in ports] == list(range(len(names) + 2))
    labels = [part.split('lv2:name "')[1].split('"')[0] for part in ports]
    assert labels == [*names, "Enabled", "Latency"]
    for part, label in zip(ports, names, strict=False):
        assert f"lv2:AudioPort, lv2:{label.split()[0]}Port" in part
    symbols = [part.split('lv2:symbol "')[1].split('"')[0] for part in ports]
    assert len(set(symbols)) == len(symbols)


@pytest.mark.parametrize(
    ("name", "inputs", "output"),
    [
        ("stereo", [("Input", 2, b"stereo", 1, 0)], ("Output", 2, b"stereo", 1, 0)),
        ("one to three", [("Input", 1, b"mono", 1, 2**32 - 1)], ("Output", 3, None, 1, 2**32 - 1)),
        (
            "two inputs",
            [("Input mic", 2, b"stereo", 1, 2**32 - 1), ("Input far", 1, b"mono", 0, 2**32 - 1)],
            ("Output", 3, None, 1, 2**32 - 1),
        ),
    ],
)
def test_clap_ports_have_the_channels_of_the_model(
    folder: Callable[[str], Path], name: str, inputs: list[Any], output: Any
) -> None:
    plugin = begin_clap(folder(name), RATE_HZ)
    ports = [
        [(port.name.decode(), port.channels, port.kind, port.flags, port.in_place_pair) for port in side]
        for side in (plugin.ports(True), plugin.ports(False))
    ]
    assert ports == [inputs, [output]]
    plugin.close()


CHAINS = pytest.mark.parametrize(
    ("name", "captured", "played"),
    [
        ("stereo", "FL FR", "FL FR"),
        ("one to three", "MONO", "AUX0 AUX1 AUX2"),
        ("two inputs", "AUX0 AUX1 AUX2", "AUX0 AUX1 AUX2"),
    ],
)


@CHAINS
def test_the_filter_chain_has_the_channels_of_the_model(
    folder: Callable[[str], Path], name: str, captured: str, played: str
) -> None:
    lines = [line.strip() for line in (folder(name) / "ladspa" / "small.conf").read_text().splitlines()]
    expected = [
        line
        for channels in (captured, played)
        for line in (f"audio.channels = {len(channels.split())}", f"audio.position = [ {channels} ]")
    ]
    assert [line for line in lines if line.startswith(("audio.channels", "audio.position"))] == expected


@CHAINS
def test_pipewire_shows_a_source_with_all_channels(
    folder: Callable[[str], Path], tmp_path: Path, name: str, captured: str, played: str
) -> None:
    with run_pipewire(folder(name) / "ladspa" / "small.conf", tmp_path) as environment:
        wait_until(lambda: {"small", "capture.small"} <= set(positions(environment)), "the source of sound")
        shown = positions(environment)
    assert (shown["capture.small"], shown["small"]) == (captured.split(), played.split())


HOSTS = {
    "applyplugin": ("ladspa-sdk", ("{in}", "{out}", "{folder}/ladspa/small.so", "small", "0")),
    "lv2apply": ("lilv-utils", ("-i", "{in}", "-o", "{out}", "urn:pulse:small")),
}
"""Debian's package, and arguments."""


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", ["stereo", "stereo interleaved"])
def test_hosts_of_debian_play_both_channels(
    folder: Callable[[str], Path], tmp_path: Path, host: str, name: str
) -> None:
    package, arguments = HOSTS[host]
    if which(host) is None:
        pytest.skip(f"{host} is missing: on Debian, install {package}")
    coarse = host == "applyplugin"  # reads and writes 16 bits only
    soundfile.write(tmp_path / "in.wav", noise(name, 6000), RATE_HZ, subtype="PCM_16" if coarse else "FLOAT")
    sound = np.asarray(soundfile.read(tmp_path / "in.wav", dtype="float32")[0], np.float32)
    places = {"in": tmp_path / "in.wav", "out": tmp_path / "out.wav", "folder": folder(name)}
    process = subprocess.run(
        [host, *(argument.format(**places) for argument in arguments)],
        env={**os.environ, "LV2_PATH": str(folder(name) / "lv2")},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    output = soundfile.read(tmp_path / "out.wav", dtype="float32")[0]
    _, expected = delay_and_output(program_of(name), sound, RATE_HZ, 1)
    assert output.shape == expected.shape
    assert np.abs(output - expected).max() < (2.1 / 32768 if coarse else CLOSE)
