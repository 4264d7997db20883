"""The page of `examples/web_chat` in a real browser."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from contract_tests.cli.browser import Page, browser
from contract_tests.cli.command import Shell, line_with
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT

QUESTION = {
    "id": "where",
    "text": "Where to?",
    "options": [{"id": "sea", "label": "The sea"}, {"id": "hills", "label": "Hills"}],
}
STEPS = [
    {"text": ["I look at ", "your clock.\n"]},
    {"calls": [{"name": "browser_time", "id": "c1"}]},
    {"approval": {"tool": "Bash", "arguments": {"command": "ls <b>/tmp</b>"}, "title": "Run a command?"}},
    {"question": {"questions": [QUESTION]}},
    {"text": "All <i>done</i>."},
]  # fmt: skip


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """The test's output is not the place."""


@contextmanager
def hosted() -> Iterator[str]:
    """The page's origin."""
    handler = partial(_Quiet, directory=str(ROOT / "examples" / "web_chat"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def chat(shell: Shell, directory: Path, steps: object) -> Iterator[Page]:
    with (
        browser(directory) as page,
        hosted() as origin,
        shell.started(
            *("serve", "--connector", "fake", "-O", f"steps={json.dumps(steps)}", "-O", "repeat=true"),
            *("--allowed-origin", origin, "--print-token"),
        ) as server,
    ):
        url = line_with(server, "listening on ").removeprefix("listening on ").strip()
        token = line_with(server, "token ").removeprefix("token ").strip()
        page.open(f"{origin}/#url={url}&token={token}")
        page.find("//header/span[text()='fake']")
        assert token not in page.address()
        yield page


@requirement("examples:web-chat")
def test_the_page_streams_runs_its_tool_and_asks_with_buttons(shell: Shell, tmp_path: Path) -> None:
    with chat(shell, tmp_path, STEPS) as page:
        page.type("//textarea", "Plan my day\n")
        page.click("//div[@class='card'][h2='Run a command?']//button[text()='allow once']")
        page.click("//label[contains(., 'The sea')]/input")
        page.click("//button[text()='Answer']")
        page.find("//div[@class='text'][contains(., 'All <i>done</i>.')]")
        page.find("//button[text()='Send' and not(@hidden)]")
        shown = page.text("//main")
        assert page.screenshot().startswith(b"\x89PNG")
    assert "I look at your clock." in shown
    assert "ls <b>/tmp</b>" in shown  # what a model says is never markup
    assert shown.count("answered") == 3


@requirement("examples:web-chat")
def test_the_page_denies_stops_and_goes_on(shell: Shell, tmp_path: Path) -> None:
    steps = [{"approval": {"tool": "Bash", "arguments": {"command": "ls"}}}, {"text": "Well."}]
    with chat(shell, tmp_path, steps) as page:
        page.type("//textarea", "Go\n")
        page.click("//button[text()='deny']")
        page.find("//div[contains(@class, 'card')][contains(., 'refused')]")
        assert "deny" in page.text("//div[contains(@class, 'card')]")
        assert "allow" not in page.text("//div[contains(@class, 'card')]")  # what was not chosen is gone
        page.find("//div[@class='text'][contains(., 'Well.')]")
        page.find("//button[text()='Send' and not(@hidden)]")
        page.type("//textarea", "Again\n")
        page.find("//div[@class='card']//button[text()='deny']")
        page.click("//button[text()='Stop']")
        page.find("//div[@class='notice'][contains(., 'cancelled')]")
        page.find("//button[text()='Send' and not(@hidden)]")
