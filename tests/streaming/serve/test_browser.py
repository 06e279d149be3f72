"""The page in a browser plays the model's output at the delay that it shows."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import samplerate
import soundfile

import pulse
from pulse.program.native.native_program import NativeProgram
from streaming import Session
from streaming.builtin import SAMPLE_RATE_HZ, model_path, noisy_path, voice_path
from streaming.events import Segments
from tests.streaming.chromium import browser, require_browser
from tests.streaming.deploy.building import build
from tests.streaming.deploy.node import require_tools
from tests.streaming.serve.browser import BrowserPage, Samples, join_frames
from tests.streaming.serve.servers import RunningServer, running_server

pytestmark = pytest.mark.slow
require_browser()

PULSE = 160
DETECTOR = {"kind": "segments", "min_silence_s": 0.1}
CALM_S = 1.0


def noisy() -> Samples:
    """The samples of the built-in recording."""
    return soundfile.read(noisy_path(), dtype="float32")[0]


def stream_audio(model: Path, sound: Samples) -> Samples:
    """The output of a model in Python for a recording."""
    session = Session(pulse.stream(model, pulse=PULSE))
    (first,), (rest,) = session.push(sound[None]).values(), session.flush().values()
    return np.concatenate([first, rest], axis=1)[0]


def serve_models(settings: Any) -> Any:
    """A server of these models; on a busy machine they may take all of its time."""
    programs = [
        (model, pulse.stream(model.path or model_path(), pulse=PULSE), SAMPLE_RATE_HZ)
        for model in settings.models
    ]
    return running_server(programs, replace(settings, budget=1.0))


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """The built-in denoiser, and the voice detector with its events."""
    from streaming.serve.settings import ModelSettings, ServerSettings

    models = (ModelSettings(streams=4), ModelSettings(voice_path(), streams=4, events={"voice": DETECTOR}))
    with serve_models(ServerSettings(models)) as started:
        yield started


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser whose microphone hears the built-in recording."""
    path = tmp_path_factory.mktemp("microphone") / "noisy.wav"
    soundfile.write(path, noisy(), SAMPLE_RATE_HZ, subtype="PCM_16")
    with browser(path) as started:
        yield started


@pytest.fixture
def visit(chromium: Any, server: RunningServer) -> Iterator[Callable[..., BrowserPage]]:
    """Opens the page; it is closed at the end, and must not have logged an error."""
    opened: list[BrowserPage] = []

    def open_page(**options: Any) -> BrowserPage:
        opened.append(BrowserPage(chromium, server.url, **options))
        return opened[-1]

    yield open_page
    for page in opened:
        page.close()


def test_the_microphone_is_played_denoised_at_the_reported_delay(
    visit: Callable[..., BrowserPage], tmp_path: Path
) -> None:
    page = visit()
    page.page.keyboard.press("r")
    page.start("Microphone")
    page.wait_for_calm(CALM_S)
    page.page.get_by_role("button", name="Stop").click()
    page.wait_for_status("Ready")
    recorded = page.save_recording(tmp_path)
    assert recorded.rate_hz == SAMPLE_RATE_HZ
    assert np.abs(recorded.microphone).max() > 0.05
    expected = stream_audio(model_path(), recorded.microphone)
    at = np.arange(recorded.first, len(recorded.played))
    assert len(at) > CALM_S / 2 * SAMPLE_RATE_HZ
    np.testing.assert_allclose(recorded.played[at], expected[at - recorded.delay], rtol=1e-5, atol=1e-6)


def test_bypass_is_the_input_at_the_same_delay(visit: Callable[..., BrowserPage], tmp_path: Path) -> None:
    page = visit()
    page.page.keyboard.press("r")
    page.page.keyboard.press("b")
    assert page.page.get_by_role("button", name="Bypass").get_attribute("aria-pressed") == "true"
    page.start("Microphone")
    page.wait_for_calm(CALM_S)
    page.page.get_by_role("button", name="Stop").click()
    page.wait_for_status("Ready")
    recorded = page.save_recording(tmp_path)
    at = np.arange(recorded.first, len(recorded.played))
    np.testing.assert_array_equal(recorded.played[at], recorded.microphone[at - recorded.delay])


def test_a_file_is_played_to_the_last_sample_of_the_flush(
    visit: Callable[..., BrowserPage], tmp_path: Path
) -> None:
    path = tmp_path / "in.wav"
    sound = noisy()[: 2 * SAMPLE_RATE_HZ + 77]
    soundfile.write(path, sound, SAMPLE_RATE_HZ, subtype="FLOAT")
    page = visit()
    page.page.keyboard.press("r")
    page.start("File", path)
    page.wait_for_status("Ready")
    recorded = page.save_recording(tmp_path)
    np.testing.assert_array_equal(recorded.microphone[: len(sound)], sound)
    expected = stream_audio(model_path(), sound)
    at = np.arange(recorded.first, recorded.delay + len(expected))
    assert len(recorded.played) >= recorded.delay + len(expected)
    np.testing.assert_allclose(recorded.played[at], expected[at - recorded.delay], rtol=1e-5, atol=1e-6)


REFUSES_RATES = """
const Usual = AudioContext;
window.AudioContext = class extends Usual {
  constructor(options) {
    if (options?.sampleRate) throw new DOMException("another rate", "NotSupportedError");
    super({ ...options, sampleRate: 48000 });
  }
};
"""


def test_a_browser_that_keeps_its_own_rate_is_resampled(
    visit: Callable[..., BrowserPage], tmp_path: Path
) -> None:
    page = visit(before=REFUSES_RATES)
    page.page.keyboard.press("r")
    page.start("Microphone")
    page.wait_for_calm(3 * CALM_S)
    page.page.get_by_role("button", name="Stop").click()
    page.wait_for_status("Ready")
    recorded = page.save_recording(tmp_path)
    assert recorded.rate_hz == 48_000
    resampled = samplerate.resample(recorded.microphone, 1 / 3, "sinc_best").astype(np.float32)
    expected = samplerate.resample(stream_audio(model_path(), resampled), 3, "sinc_best")
    at = np.arange(recorded.first, min(len(recorded.played), len(expected)))
    output, reference = recorded.played[at], expected[at - recorded.delay]
    assert np.sum((output - reference) ** 2) < 1e-3 * np.sum(reference**2)


def test_events_and_probabilities_are_shown(visit: Callable[..., BrowserPage]) -> None:
    page = visit()
    page.start("Example", model="voice")
    page.wait_for("() => document.querySelector('#frames-legend').textContent.startsWith('voice 0.')")
    page.wait_for_status("Ready")
    assert not page.page.get_by_role("button", name="Bypass").is_enabled()
    detector = Segments(SAMPLE_RATE_HZ / PULSE, min_silence_s=0.1)
    events = detector.push(stream_audio(voice_path(), noisy())) + detector.flush()
    assert len(events) > 2
    texts = page.page.locator("#events li").all_inner_texts()
    assert [text.split("\n")[0] for text in reversed(texts)] == [f"{event.start_s:.2f} s" for event in events]


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1440, 900)])
def test_the_layout_fits_and_controls_have_names(
    visit: Callable[..., BrowserPage], width: int, height: int
) -> None:
    page = visit(width=width, height=height)
    page.page.wait_for_selector("#model:enabled")
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    start = page.page.get_by_role("button", name="Start").bounding_box()
    assert start["y"] + start["height"] <= height, "the start is in sight"
    for control in page.page.locator("button:visible, select:visible, input:visible").all():
        box = control.bounding_box()
        assert control.evaluate("e => (e.labels?.[0] ?? e).textContent.trim()")
        assert box["height"] >= 24, control
        assert box["width"] >= 24, control
    reached: set[str] = set()
    for _ in range(20):
        page.page.keyboard.press("Tab")
        reached.add(page.page.evaluate("document.activeElement.id || document.activeElement.name"))
    named = {"model", "source", "microphone", "start", "bypass", "mute", "record", "volume", "view"}
    assert named <= reached


def test_the_served_page_loads_nothing_from_elsewhere(
    visit: Callable[..., BrowserPage], server: RunningServer
) -> None:
    page = visit()
    page.start("Example")
    assert len(page.requests) >= 4
    assert all(url.startswith((server.url, "data:", "blob:")) for url in page.requests)


def test_a_lost_server_is_reported_and_the_page_can_start_again(chromium: Any) -> None:
    from streaming.serve.settings import ServerSettings

    with serve_models(ServerSettings()) as server:
        page = BrowserPage(chromium, server.url)
        page.start("Microphone")
    page.wait_for_status("Stopped by an error")
    assert page.page.get_by_role("alert").is_visible()
    assert page.page.get_by_role("button", name="Start").is_enabled()
    page.context.close()


def test_the_page_asks_for_a_token(chromium: Any) -> None:
    from streaming.serve.settings import ServerSettings

    with serve_models(ServerSettings(tokens=("secret",))) as server:
        page = BrowserPage(chromium, server.url)
        token = page.page.get_by_label("Token of the server")
        token.wait_for()
        assert page.page.locator("#model-note").inner_text() == "The server requires a token."
        assert page.page.locator("#model").is_disabled()
        token.fill("secret")
        page.page.keyboard.press("Enter")
        page.start("Example")
        page.context.close()


def test_a_model_in_the_page_makes_the_same_frames(chromium: Any, tmp_path: Path) -> None:
    from streaming.serve.settings import ModelSettings, ServerSettings

    require_tools()
    folder, path = tmp_path / "web", tmp_path / "in.wav"
    program = pulse.stream(model_path(), pulse=PULSE)
    assert isinstance(program, NativeProgram)
    build(program, folder, target="wasm32", name="denoise", rate_hz=SAMPLE_RATE_HZ)
    sound = noisy()[: 2 * SAMPLE_RATE_HZ + 77]
    soundfile.write(path, sound, SAMPLE_RATE_HZ, subtype="FLOAT")
    with serve_models(ServerSettings((ModelSettings(web=folder),))) as server:
        page = BrowserPage(chromium, server.url)
        page.page.keyboard.press("r")
        page.page.get_by_label("in this page").check()
        page.start("File", path)
        assert not server.service.connections, "no stream of the server"
        page.wait_for_status("Ready")
        recorded = page.save_recording(tmp_path)
        page.close()
    expected = stream_audio(model_path(), sound)
    at = np.arange(recorded.first, recorded.delay + len(expected))
    np.testing.assert_allclose(recorded.played[at], expected[at - recorded.delay], atol=1e-5)


CLIENT = """
async ([url, samples, format]) => {
  const { PulseStream } = await import("/client.js");
  const found = [];
  const onframes = ({ first, values }) => found.push({ first, values: Array.from(values) });
  let stream = null;
  while (!stream) { // a busy machine refuses streams
    stream = await PulseStream.open(url, { model: "denoiser", rate: 16000, format, onframes }).catch((error) => {
      if (error.code !== "busy") throw error;
    });
  }
  stream.send(Float32Array.from(samples.slice(0, 777)));
  await stream.reset();
  found.length = 0;
  for (let at = 0; at < samples.length; at += 333) stream.send(Float32Array.from(samples.slice(at, at + 333)));
  const { sent } = await stream.flush();
  const round = await stream.ping();
  const code = await PulseStream.open(url, { model: "unknown" }).catch((error) => error.code);
  stream.close();
  return { found, sent, round, code };
}
"""


@pytest.mark.parametrize(("format", "tolerance"), [("f32", 1e-6), ("pcm16", 1 / 32768)])
def test_the_client_streams_from_the_start_after_a_reset(
    visit: Callable[..., BrowserPage], server: RunningServer, format: str, tolerance: float
) -> None:
    sound = noisy()[8000:12345]
    if format == "pcm16":
        sound = np.round(sound * 32768).astype(np.float32) / 32768
    page = visit()
    answer = page.page.evaluate(CLIENT, [f"{server.ws}/v1/stream", sound.tolist(), format])
    expected = stream_audio(model_path(), sound)
    assert answer["sent"] == [len(expected)]
    assert answer["round"] > 0
    assert answer["code"] == "model"
    np.testing.assert_allclose(join_frames(answer), expected, rtol=1e-5, atol=tolerance)
