"""A headless Chromium that opens folders of this machine."""

import functools
import importlib.util
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import Any

import pytest

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required"),
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class _Quiet(SimpleHTTPRequestHandler):
    isolated = False

    def end_headers(self) -> None:
        """Isolated pages have a clock of 5 us; others of 100 us."""
        if self.isolated:
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class _Isolated(_Quiet):
    isolated = True


@contextmanager
def served(folder: Path, isolated: bool = False) -> Generator[str]:
    """The address of a folder, on this machine only."""
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Isolated if isolated else _Quiet, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def opened(folder: Path, microphone: Path | None = None, isolated: bool = False) -> Generator[Any]:
    """A page of the folder; ``microphone`` is a WAV file that the browser hears over and over.

    isolated  from other sites, which gives it a finer clock
    Skips the test where there is no browser.
    """
    program = next((found for name in BROWSERS if (found := which(name))), None)
    if program is None:
        pytest.skip("Chromium is missing: on Debian, install chromium")
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is missing: pip install playwright")
    from playwright.sync_api import sync_playwright

    flags = [*FLAGS, *([f"--use-file-for-fake-audio-capture={microphone}"] if microphone else [])]
    with served(folder, isolated) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        try:
            page = browser.new_page()
            page.set_default_timeout(120_000)
            page.goto(f"{address}README.md")
            yield page
        finally:
            browser.close()
