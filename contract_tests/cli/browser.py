"""A headless Chromium, driven over WebDriver (W3C), which is plain HTTP."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key under which WebDriver names an element."""
WAIT_SECONDS = 20

# no traffic but the page's own
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1000,900",
]  # fmt: skip


@dataclass(frozen=True)
class Page:
    """One window."""

    client: httpx2.Client

    def open(self, url: str) -> None:
        self._post("/url", {"url": url})

    def find(self, xpath: str) -> str:
        """The first such element; waits until there is one."""
        return self._post("/element", {"using": "xpath", "value": xpath})[ELEMENT]

    def click(self, xpath: str) -> None:
        self._post(f"/element/{self.find(xpath)}/click", {})

    def type(self, xpath: str, text: str) -> None:
        self._post(f"/element/{self.find(xpath)}/value", {"text": text})

    def text(self, xpath: str = "//body") -> str:
        return self.client.get(f"/element/{self.find(xpath)}/text").json()["value"]

    def address(self) -> str:
        return self.client.get("/url").json()["value"]

    def screenshot(self) -> bytes:
        return base64.b64decode(self.client.get("/screenshot").json()["value"])

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self.client.post(path, json=body).json()["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise AssertionError(
                f"{path} {body}: {answer['error']}: {answer['message']}\nthe page: {self._page_text()}"
            )
        return answer

    def _page_text(self) -> str:
        return self.client.post("/execute/sync", json={"script": "return document.body.innerText", "args": []}).text


@contextmanager
def browser(directory: Path) -> Iterator[Page]:
    """A window of a browser with a profile of its own in `directory`; skips where there is no Chromium."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium here: install the system packages chromium and chromium-driver")
    environment = {"HOME": str(directory), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            port = _port_of(process)
            options = {"binary": chromium, "args": [*FLAGS, f"--user-data-dir={directory / 'profile'}"]}
            capabilities = {"browserName": "chrome", "goog:chromeOptions": options}
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
                made = client.post("/session", json={"capabilities": {"alwaysMatch": capabilities}}).json()["value"]
                assert "sessionId" in made, made
                session = f"http://127.0.0.1:{port}/session/{made['sessionId']}"
                client.base_url = session
                client.post("/timeouts", json={"implicit": WAIT_SECONDS * 1000})
                try:
                    yield Page(client)
                finally:
                    client.delete(session).raise_for_status()  # no slash behind it, else the browser lives on
        finally:
            process.terminate()


def _port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"started successfully on port (\d+)", line)
        if found:
            return int(found[1])
    raise AssertionError("chromedriver ended before it listened")
