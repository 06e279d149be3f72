"""Control of a server's page in a browser, as a user does it."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

PATIENCE_MS = 60_000
FADE = 128
Samples = NDArray[np.float32]


@dataclass(frozen=True)
class Recording:
    """A recording of the page: input and output on one clock.

    rate_hz  of both
    delay    frames by which the output is later
    since    the frame from which on this delay held, without a late block
    """

    rate_hz: int
    microphone: Samples
    played: Samples
    delay: int
    since: int

    @property
    def first(self) -> int:
        """The frame from which on the output is the model's, after fades, at this delay."""
        return max(self.since, self.delay) + FADE


def join_frames(answer: dict[str, Any]) -> Any:
    """Join the frames of the only output that a page has received; they must have no gaps."""
    numbers = np.cumsum([0, *(len(part["values"]) for part in answer["found"])])
    assert [part["first"] for part in answer["found"]] == numbers[:-1].tolist()
    return np.concatenate([np.array(part["values"], np.float32) for part in answer["found"]])


class BrowserPage:
    """The page of a server in a browser, used as a person would; it fails if the page logs an error."""

    def __init__(
        self, browser: Any, url: str, width: int = 1440, height: int = 900, before: str = ""
    ) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, permissions=["microphone"], accept_downloads=True
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda line: line.type == "error" and self.problems.append(line.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        if before:
            self.page.add_init_script(before)
        self.page.goto(url)

    def wait_for(self, expression: str, argument: object = None) -> None:
        """Wait until a JavaScript function returns true; it is polled because the page's policy forbids eval."""
        end = time.monotonic() + PATIENCE_MS / 1000
        while not self.page.evaluate(expression, argument):
            assert time.monotonic() < end, f"{expression} with {argument}; the page says: {self.messages()}"
            self.page.wait_for_timeout(50)

    def messages(self) -> str:
        """The status line and the error."""
        return self.page.locator("#status").inner_text() + " " + self.page.locator("#error").inner_text()

    def wait_for_status(self, text: str) -> None:
        """Wait until the status line begins with a text."""
        self.wait_for("text => document.querySelector('#status').textContent.startsWith(text)", text)

    def start(self, source: str, file: Path | None = None, model: str = "") -> None:
        """Choose the model and where sound comes from, press the button, and wait until sound goes through."""
        end = time.monotonic() + PATIENCE_MS / 1000
        self.page.wait_for_selector("#model:enabled")
        if model:
            self.page.get_by_label("Model", exact=True).select_option(model)
        self.page.get_by_label(source, exact=True).first.check()
        if file is not None:
            self.page.get_by_label("Audio file").set_input_files(file)
        while not self.is_running():
            assert time.monotonic() < end, f"the page says: {self.messages()}"
            if "try again" in self.messages() or self.messages().startswith(
                "Ready"
            ):  # a busy machine refuses streams
                self.page.get_by_role("button", name="Start").click()
            self.page.wait_for_timeout(100)

    def is_running(self) -> bool:
        """Whether the page plays."""
        return self.page.locator("#status").get_attribute("data-state") == "running"

    def wait_for_calm(self, seconds: float) -> None:
        """Wait until the delay has not changed for this long, without a late block."""
        self.wait_for(
            """seconds => {
                const { since, now, samples, rate } = document.querySelector("#delay-total").dataset;
                return samples && now - since > seconds * rate + Number(samples);
            }""",
            seconds,
        )

    def save_recording(self, folder: Path) -> Recording:
        """Save the recording and read it."""
        link = self.page.get_by_role("link", name="Save")
        with self.page.expect_download() as download:
            link.click()
        path = folder / download.value.suggested_filename
        download.value.save_as(path)
        samples, rate_hz = soundfile.read(path, dtype="float32")
        attributes = {name: int(link.get_attribute(f"data-{name}")) for name in ("samples", "since")}
        return Recording(rate_hz, samples[:, 0], samples[:, 1], attributes["samples"], attributes["since"])

    def close(self) -> None:
        """Close the browser."""
        self.context.close()
        assert not self.problems
