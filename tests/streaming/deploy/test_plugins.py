"""Plug-ins give the frames of Python at the latency that they report, in hosts of our own and in Debian's."""

import os
import subprocess
from pathlib import Path
from shutil import which

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError, WriteError
from pulse.program.native.native_program import NativeProgram
from tests.noise import quiet_noise
from tests.streaming.deploy.building import HERE, build, compile_program
from tests.streaming.deploy.hosts import Begin, begin_clap, begin_ladspa, blocks, both_hosts
from tests.streaming.deploy.pipewire import nodes, run_pipewire
from tests.streaming.deploy.sound import RATE_HZ, Sound, delay_and_output
from tests.streaming.models import channel_filter_model
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(HERE is None, reason="no level for this system")
CLOSE = 1e-6
"""Filters of resamplers are computed by other sums than Python's, and rounded to float32."""


@pytest.fixture(scope="module")
def folder(program: NativeProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plugins")
    build(program, path, rate_hz=RATE_HZ, plugins=("ladspa", "lv2", "clap"))
    return path


@both_hosts
@pytest.mark.parametrize("rate_hz", [RATE_HZ, 48_000, 44_100, 8_000])
def test_frames_of_plugins_agree_with_python(
    folder: Path, program: NativeProgram, begin: Begin, rate_hz: int
) -> None:
    sound = quiet_noise(5000)
    delay, expected = delay_and_output(program, sound, rate_hz, 1)
    plugin = begin(folder, rate_hz)
    output = np.concatenate([plugin.run(block) for block in blocks(sound)])
    assert plugin.delay == delay
    assert np.abs(output - expected).max() < CLOSE
    plugin.close()


@both_hosts
def test_reset_starts_a_new_stream(folder: Path, begin: Begin) -> None:
    sound, plugin = quiet_noise(700), begin(folder, RATE_HZ)
    first = plugin.run(sound)
    assert not np.array_equal(plugin.run(sound), first)
    plugin.reset()
    assert np.array_equal(plugin.run(sound), first)
    plugin.close()


@both_hosts
def test_bypass_is_as_late_as_the_model(folder: Path, program: NativeProgram, begin: Begin) -> None:
    sound, plugin = quiet_noise(3000), begin(folder, RATE_HZ)
    delay, expected = delay_and_output(program, sound, RATE_HZ, 1)
    through = np.concatenate([np.zeros(delay, np.float32), sound])[: len(sound)]
    output = np.concatenate(
        [plugin.run(sound[:500]), plugin.run(sound[500:2000], True), plugin.run(sound[2000:], False)]
    )
    fade = RATE_HZ // 100
    assert np.abs(output[:500] - expected[:500]).max() < CLOSE
    assert np.array_equal(output[500 + fade : 2000], through[500 + fade : 2000])
    assert np.abs(output[2000 + fade :] - expected[2000 + fade :]).max() < CLOSE
    low, high = np.minimum(through, expected) - CLOSE, np.maximum(through, expected) + CLOSE
    assert ((low <= output) & (output <= high)).all()
    plugin.close()


def test_nan_does_not_stay_in_a_plugin(folder: Path, program: NativeProgram) -> None:
    sound, plugin = quiet_noise(900), begin_ladspa(folder, RATE_HZ)
    broken = sound.copy()
    broken[[5, 300, 301]] = np.nan, np.inf, -np.inf
    sound[[5, 300, 301]] = 0
    assert np.abs(plugin.run(broken) - delay_and_output(program, sound, RATE_HZ, 1)[1]).max() < CLOSE
    plugin.close()


@both_hosts
@pytest.mark.parametrize("rate_hz", [0, 16, 5_000_000])
def test_a_rate_too_far_from_the_model_s_is_refused(folder: Path, begin: Begin, rate_hz: int) -> None:
    assert not begin(folder, rate_hz).accepts


def test_a_clap_plugin_has_mono_ports_and_a_bypass(folder: Path) -> None:
    plugin = begin_clap(folder, RATE_HZ)
    for is_input in (True, False):
        port = plugin.port(is_input)
        assert (port.channels, port.kind, port.flags, port.in_place_pair) == (1, b"mono", 1, 0)
    assert plugin.bypass == 0
    plugin.run(quiet_noise(10), True)
    assert plugin.bypass == 1
    plugin.close()


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("ladspa/small.so", "ladspa_descriptor"),
        ("lv2/small.lv2/small.so", "lv2_descriptor"),
        ("clap/small.clap", "clap_entry"),
    ],
)
def test_only_the_entry_can_be_seen(folder: Path, path: str, entry: str) -> None:
    if which("nm") is None:
        pytest.skip("nm is missing: install binutils")
    process = subprocess.run(
        ["nm", "-D", "--defined-only", folder / path], capture_output=True, text=True, check=True
    )
    assert [line.split()[-1] for line in process.stdout.splitlines()] == [entry]


HOSTS = {
    "applyplugin": ("ladspa-sdk", ("{in}", "{out}", "{folder}/ladspa/small.so", "small", "0")),
    "sox": ("sox", ("-V1", "{in}", "-e", "float", "-b", "32", "{out}", "ladspa", "small", "small", "0", "0")),
    "lv2proc": ("lv2proc", ("-i", "{in}", "-o", "{out}", "urn:pulse:small")),
    "lv2apply": ("lilv-utils", ("-i", "{in}", "-o", "{out}", "urn:pulse:small")),
}
"""Debian's package, and arguments."""


def read(path: Path) -> Sound:
    """The samples of a file, which has the model's rate."""
    sound, rate_hz = soundfile.read(path, dtype="float32")
    assert rate_hz == RATE_HZ
    return np.asarray(sound, np.float32)


@pytest.mark.parametrize("host", HOSTS)
def test_hosts_of_debian_play_the_sound_of_python(
    folder: Path, program: NativeProgram, tmp_path: Path, host: str
) -> None:
    package, arguments = HOSTS[host]
    if which(host) is None:
        pytest.skip(f"{host} is missing: on Debian, install {package}")
    coarse = host == "applyplugin"  # reads and writes 16 bits only
    soundfile.write(tmp_path / "in.wav", quiet_noise(6000), RATE_HZ, subtype="PCM_16" if coarse else "FLOAT")
    sound = read(tmp_path / "in.wav")
    places = {"in": tmp_path / "in.wav", "out": tmp_path / "out.wav", "folder": folder}
    process = subprocess.run(
        [host, *(argument.format(**places) for argument in arguments)],
        env={**os.environ, "LADSPA_PATH": str(folder / "ladspa"), "LV2_PATH": str(folder / "lv2")},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    output = read(tmp_path / "out.wav")
    _, expected = delay_and_output(program, sound, RATE_HZ, 1)
    assert len(output) == len(sound)
    assert np.abs(output - expected).max() < (2.1 / 32768 if coarse else CLOSE)


def test_pipewire_shows_a_virtual_microphone(folder: Path, tmp_path: Path) -> None:
    """PipeWire reads the filter chain, loads the plug-in and shows a source of sound."""
    with run_pipewire(folder / "ladspa" / "small.conf", tmp_path) as environment:
        wait_until(lambda: ("small", "Audio/Source") in nodes(environment), "the source of sound")
        assert ("capture.small", "Stream/Input/Audio") in nodes(environment)


def test_plugins_refuse_models_without_sound(tmp_path: Path, program: NativeProgram) -> None:
    with pytest.raises(WriteError, match="give rate="):
        build(program, tmp_path, plugins=("lv2",))
    features = (
        r"audio of up to 8 channels at one rate, and the input x is float32 \[1, 16, 6\]: add .* recipe"
    )
    with pytest.raises(WriteError, match=features):
        build(compile_program(channel_filter_model(), 6), tmp_path, rate_hz=RATE_HZ, plugins=("lv2",))
    with pytest.raises(InputError, match="plugin=: unknown plug-in 'vst'; choose one of ladspa, lv2, clap"):
        build(program, tmp_path, rate_hz=RATE_HZ, plugins=("vst",))
    assert not list(tmp_path.iterdir())
