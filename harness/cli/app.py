"""The command line as a whole: which commands there are, `--version`, and what a mistake looks like."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from harness.cli.acp import EXAMPLES as ACP_EXAMPLES
from harness.cli.acp import acp
from harness.cli.bench import build_bench_app
from harness.cli.chat import EXAMPLES as CHAT_EXAMPLES
from harness.cli.chat import chat
from harness.cli.demo import EXAMPLES as DEMO_EXAMPLES
from harness.cli.demo import demo
from harness.cli.doctor import EXAMPLES as DOCTOR_EXAMPLES
from harness.cli.doctor import doctor
from harness.cli.failures import reported
from harness.cli.mcp import EXAMPLES as MCP_EXAMPLES
from harness.cli.mcp import mcp
from harness.cli.models import build_models_app
from harness.cli.policy import build_policy_app
from harness.cli.record import EXAMPLES as RECORD_EXAMPLES
from harness.cli.record import record
from harness.cli.requests import build_requests_app
from harness.cli.run import EXAMPLES as RUN_EXAMPLES
from harness.cli.run import run
from harness.cli.scripted_model import EXAMPLES as SCRIPTED_MODEL_EXAMPLES
from harness.cli.scripted_model import scripted_model
from harness.cli.serve import EXAMPLES as SERVE_EXAMPLES
from harness.cli.serve import serve
from harness.cli.sessions import build_sessions_app
from harness.cli.terminal import fill_standard_streams
from harness.cli.tools import build_tools_app
from harness.cli.verify import EXAMPLES as VERIFY_EXAMPLES
from harness.cli.verify import verify

_HELP = "Talk to any agent CLI or model as if it were an LLM that calls your tools."
_EXAMPLES = """\b
Examples:
  harness demo
  harness run "What is the weather in Oslo?" --tools tools.py
  harness serve --connector claude --port 0
"""


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"harness {version('level2-harness')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Tell the version and end.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Nothing of its own: the commands do the work."""


def build_app() -> typer.Typer:
    """All commands. Their modules are light: what a command works with is imported when it runs."""
    app = typer.Typer(
        name="harness",
        help=_HELP,
        epilog=_EXAMPLES,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=_HELP, epilog=_EXAMPLES)(_root)
    app.command(epilog=RUN_EXAMPLES)(run)
    app.command(epilog=CHAT_EXAMPLES, short_help="Talk with an agent or model, turn by turn.")(chat)
    app.command(epilog=DEMO_EXAMPLES)(demo)
    app.command(epilog=SERVE_EXAMPLES, short_help="Serve conversations over HTTP or stdio.")(serve)
    app.command(epilog=MCP_EXAMPLES, short_help="Be an MCP server for any connector.")(mcp)
    app.command(epilog=ACP_EXAMPLES, short_help="Be an ACP agent, for editors.")(acp)
    app.command(epilog=DOCTOR_EXAMPLES, short_help="Tell which connectors can be used here.")(doctor)
    app.command(epilog=VERIFY_EXAMPLES)(verify)
    app.command(epilog=RECORD_EXAMPLES, short_help="Record a connector and its peer, for replay.")(record)
    app.add_typer(build_tools_app(), name="tools")
    app.add_typer(build_models_app(), name="models")
    app.add_typer(build_policy_app(), name="policy", short_help="See what a policy says, and trust a project's.")
    app.add_typer(build_requests_app(), name="requests")
    app.add_typer(build_sessions_app(), name="sessions", short_help="List, read and forget conversations.")
    app.add_typer(build_bench_app(), name="bench")
    app.command("scripted-model", epilog=SCRIPTED_MODEL_EXAMPLES)(scripted_model)
    return app


def main() -> NoReturn:
    """The entry point. Ends the process with the exit code of the command."""
    fill_standard_streams()
    # asked here, because what escapes a command may do so before its options were read
    with reported(verbose=not {"-v", "--verbose"}.isdisjoint(sys.argv)):
        build_app()(prog_name="harness")
    raise SystemExit(0)
