"""What `harness demo` does: a scripted model on loopback, the real CLI against it, and every step for a person."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import typer

from harness.cli.activity import Line as ShownLine
from harness.cli.activity import Style, usage_text
from harness.cli.demo_script import PROMPT, SCRIPT, Travel
from harness.cli.failures import complain
from harness.cli.logs import set_up_logs
from harness.cli.run import Approve
from harness.cli.run_plan import Plan
from harness.cli.running import Run, exit_code_of_run
from harness.cli.terminal import Terminal, open_terminal
from harness.cli.text_view import TextView
from harness.contract.options import ConversationOptions, Timeouts
from harness.orchestrator.completion import Completion
from harness.orchestrator.lines import ItemLine, Line
from harness.scripted_model import open_scripted_model

_TURN_MS = 120_000
_WHAT_IT_WAS = """\
The CLI was the real one, the model was a script: nothing left this machine.
For the real model log in ('claude /login', or export ANTHROPIC_API_KEY=...), put your functions into tools.py and type:
"""
_WITH_THE_REAL_MODEL = """\
    harness run "What is the weather in Oslo?" --connector claude --tools tools.py"""


def show(*, log: Path | None, plain: bool, verbose: bool) -> None:
    """Runs the demo; the exit code is 0 only if the answer quotes what the tool drew."""
    set_up_logs(verbose=verbose)
    with open_terminal(plain=plain, together=True) as terminal:
        code = anyio.run(_show, terminal, log)
    raise typer.Exit(code)


async def _show(terminal: Terminal, log: Path | None) -> int:
    view = _DemoView(terminal)
    travel = Travel()
    view.write_line(ShownLine(Style.QUIET, "The real Claude Code CLI, a scripted model on loopback, two Python tools."))
    view.write_line(ShownLine(Style.ALERT, f"> {PROMPT}"))
    async with open_scripted_model(SCRIPT, log=log) as model:
        with TemporaryDirectory(prefix="harness-demo-") as directory:
            plan = _plan(travel, model.url, Path(directory))
            completion = await Run(view).complete(plan)
    view.end(completion)
    if completion.error is None and (travel.booking is None or travel.booking not in (completion.content or "")):
        complain("the answer does not quote what the tool drew: the round trip is broken")
        return 1
    return exit_code_of_run(completion)


def _plan(travel: Travel, url: str, directory: Path) -> Plan:
    """A conversation in a clean environment: a home of its own, a made-up key, and no way out of this machine."""
    (directory / "work").mkdir()
    connector_options = {
        "base_url": url,
        "key": "sk-made-up-for-the-demo",
        "home": str(directory / "home"),
        "env": {
            **{name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")},
            **{name: "127.0.0.1" for name in ("NO_PROXY", "no_proxy")},
        },
    }
    options = ConversationOptions(
        connector="claude",
        cwd=str(directory / "work"),
        timeouts=Timeouts(turn_ms=_TURN_MS),
        connector_options_json=json.dumps(connector_options),
    )
    return Plan(PROMPT, [travel.get_weather, travel.book_train], options, Approve.DENY, url=None)


class _DemoView:
    """Text and activity in one stream, then what it all was."""

    def __init__(self, terminal: Terminal) -> None:
        self._text = TextView(terminal)

    def see(self, line: Line) -> None:
        if isinstance(line, ItemLine):
            self._text.item(line.item)

    def end(self, completion: Completion) -> None:
        self._text.answer(completion.content or "")
        self.write_line(ShownLine(Style.QUIET, f"{usage_text(completion.usage)} (figures of the script)"))
        if completion.error is not None:
            complain(completion.error.message)
        else:
            self.write_line(ShownLine(Style.QUIET, _WHAT_IT_WAS))
            self.write_line(ShownLine(Style.CALL, _WITH_THE_REAL_MODEL))

    def write_line(self, line: ShownLine) -> None:
        self._text.line(line)
