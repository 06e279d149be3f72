"""Serve folders of this machine as pages for a browser."""

import functools
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.streaming.chromium import browser, require_browser


class _Quiet(SimpleHTTPRequestHandler):
    isolated = False

    def end_headers(self) -> None:
        """Isolated pages have a clock of 5 us; others of 100 us."""
        if self.isolated:
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Discard the line that a request would print."""


class _Isolated(_Quiet):
    isolated = True


@contextmanager
def serve_folder(folder: Path, isolated: bool = False) -> Generator[str]:
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
def open_page(folder: Path, microphone: Path | None = None, isolated: bool = False) -> Generator[Any]:
    """A page of the folder; ``microphone`` is a WAV file that the browser hears over and over.

    isolated  from other sites, which gives it a finer clock
    Skips the test if there is no browser.
    """
    require_browser()
    with serve_folder(folder, isolated) as address, browser(microphone) as chromium:
        page = chromium.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{address}README.md")
        yield page
