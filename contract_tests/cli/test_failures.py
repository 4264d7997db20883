"""What escapes a command: one line, the right exit code, and a traceback only on demand."""

import pytest

from contract_tests.requirements import requirement
from harness.cli.failures import reported
from harness.cli.run import Approve
from harness.cli.run_plan import Plan
from harness.cli.running import with_connector
from harness.contract import ConversationOptions
from harness.errors import ConfigError, ConnectorUnavailable, HarnessError, PeerLost
from harness.registry import Registry


@requirement("cli:usage", "cli:run:exit-codes")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("the file 'x'\n  is\x1b[2J broken"), 2),
        (ConnectorUnavailable("type: pip install x"), 3),
        (PeerLost("gone"), 1),
    ],
)
def test_an_error_of_ours_is_its_message_in_one_line(
    error: HarnessError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end, reported(verbose=True):
        raise error
    shown = capsys.readouterr().err
    assert end.value.code == code
    assert shown == f"harness: {' '.join(error.message.split())}\n".replace("\x1b", "␛")


@requirement("cli:usage")
def test_a_fault_of_ours_is_one_line_too_and_says_where_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end, reported():
        raise ZeroDivisionError("by nobody")
    assert end.value.code == 1
    assert capsys.readouterr().err == "harness: internal error, ZeroDivisionError: by nobody (-v shows where)\n"

    with pytest.raises(SystemExit), reported(verbose=True):
        raise ZeroDivisionError("by nobody")
    assert "Traceback" in capsys.readouterr().err


@requirement("cli:run:connector-choice")
async def test_without_any_usable_connector_the_shortest_way_to_one_is_told() -> None:
    plan = Plan("Hello", [], ConversationOptions(), Approve.DENY, url=None)
    with pytest.raises(ConnectorUnavailable, match=r"pip install 'level2-harness\[claude\]'"):
        await with_connector(plan, Registry({}))
