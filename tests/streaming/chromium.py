"""A browser without a window, whose microphone is a file: Debian's Chromium, driven by playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
)


def require_browser() -> None:
    """Skip with the reason if there is no browser to drive."""
    pytest.importorskip("playwright.sync_api", reason="needs the extra browser")
    if not CHROMIUM:
        pytest.skip("apt-get install chromium", allow_module_level=True)


@contextmanager
def browser(microphone: Path | None = None) -> Iterator[Any]:
    """Start a browser whose microphone repeats a WAV file, or beeps without one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        microphone_flags = [] if microphone is None else [f"--use-file-for-fake-audio-capture={microphone}"]
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *microphone_flags])
        try:
            yield started
        finally:
            started.close()
