"""A CLI at the process port: what it writes, what it is told, how it fails. A real program over real pipes."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from connectors._process import PeerProcess, open_process
from contract_tests.connectors.processes import ENVIRONMENT, environment_of, next_line, standin, told_pids
from contract_tests.requirements import requirement
from harness.errors import ConnectorUnavailable, InvalidArgument, PeerLost, PeerProtocolError

MIB = 1024 * 1024


@asynccontextmanager
async def opened(*steps: str, seconds: float = 5, max_line_bytes: int = 64 * MIB) -> AsyncGenerator[PeerProcess]:
    with anyio.fail_after(seconds):
        async with open_process(
            standin(*steps), env=ENVIRONMENT, name="standin", max_line_bytes=max_line_bytes, grace_seconds=1
        ) as process:
            yield process


async def test_a_line_goes_out_and_comes_back_as_it_was() -> None:
    line = json.dumps({"text": "\u2028 \U0001f600 \r"}, ensure_ascii=False).encode()
    async with opened("echo") as process:
        process.write(line + b"\n")
        assert await next_line(process) == line


@requirement("process:lines:limit")
async def test_fifty_mebibytes_in_one_line_pass_both_ways() -> None:
    async with opened(f"line:{50 * MIB}", "echo", seconds=20) as process:
        line = await next_line(process)
        assert len(line) == 50 * MIB
        assert "\u2028" in json.loads(line)["text"]
        process.write(line + b"\n")
        assert process.unsent_bytes > 0
        assert await next_line(process) == line
        assert process.unsent_bytes == 0


@requirement("process:lines:limit")
async def test_a_line_over_the_configured_limit_is_a_clear_error() -> None:
    async with opened("say:fine", "line:2000000", "echo", max_line_bytes=MIB) as process:
        assert await next_line(process) == b"fine"
        with pytest.raises(PeerProtocolError, match="longer than 1048576 bytes"):
            await process.receive()


@requirement("process:stderr:drained")
async def test_ten_megabytes_of_stderr_before_the_answer_block_nobody() -> None:
    async with opened("stderr:10000000", "complain:last words", "say:done", "sleep", seconds=10) as process:
        assert await next_line(process) == b"done"
        assert process.stderr_tail.endswith("y\nlast words\n")
        assert len(process.stderr_tail) <= 64 * 1024


@requirement("process:output:flood")
async def test_others_get_their_turn_while_a_peer_floods() -> None:
    async with opened("flood") as process, anyio.create_task_group() as tasks:
        lines = 0

        async def read() -> None:
            nonlocal lines
            async for batch in process.lines():
                lines += len(batch)

        tasks.start_soon(read)
        turns = 0
        while lines < 20_000:
            await anyio.lowlevel.checkpoint()
            turns += 1
        assert turns > lines / 10_000
        tasks.cancel_scope.cancel()


async def test_a_cancelled_read_loses_nothing() -> None:
    async with opened("echo") as process:
        process.write(b"half")
        with anyio.move_on_after(0.05):
            await process.receive()
        process.write(b" and half\n")
        assert await next_line(process) == b"half and half"


async def test_a_peer_that_does_not_read_makes_nobody_wait() -> None:
    async with opened("say:up", "sleep") as process:
        await next_line(process)
        process.write(b"x" * (8 * MIB))
        process.write(b"y\n")
        assert process.unsent_bytes > 7 * MIB
        with anyio.move_on_after(0.05) as waited:
            await process.drain()
        assert waited.cancelled_caught


async def test_drain_returns_when_the_peer_has_taken_everything() -> None:
    async with opened("echo") as process:
        process.write(b"x" * MIB + b"\n")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(process.receive)
            await process.drain()
        assert process.unsent_bytes == 0


# --- how it fails -------------------------------------------------------------------------------------------------


@requirement("process:start:clear-errors")
async def test_a_program_that_is_missing_or_unusable_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("no program")
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x7fELF")
    garbage.chmod(0o755)
    for argv, message in (
        (["no-such-cli"], "there is no program 'no-such-cli'.*install it"),
        ([str(script)], f"'{script}' may not be executed; check its permissions"),
        ([str(garbage)], f"'{garbage}' is no program for this system"),
        (["C:\\claude.cmd"], "claude.cmd' cannot be started here: name a native program"),
    ):
        with pytest.raises(ConnectorUnavailable, match=message) as caught:
            async with open_process(argv, env=ENVIRONMENT):
                pass
        assert caught.value.detail["reason"] == "not_installed"


@requirement("process:start:clear-errors")
async def test_what_the_caller_got_wrong_is_not_called_a_missing_program(tmp_path: Path) -> None:
    for argv, cwd, message in (
        (standin("echo"), tmp_path / "nowhere", "working directory '.*nowhere' is not a directory"),
        (standin("say:" + "x" * 200_000), None, r"command line of '.*' is too long \(200"),
        (standin("a\0b"), None, "not possible text"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            async with open_process(argv, env=ENVIRONMENT, cwd=cwd):
                pass


@requirement("process:lost:says-why")
async def test_a_peer_that_exits_at_once_is_lost_with_its_code_and_last_words() -> None:
    async with opened("complain:error: unknown option '--frob'", "exit:2") as process:
        with pytest.raises(PeerLost) as caught:
            await process.receive()
        assert str(caught.value) == "'standin' exited with code 2: error: unknown option '--frob'"
        assert (caught.value.exit_code, process.returncode, await process.wait()) == (2, 2, 2)
        assert "--frob" in caught.value.stderr_tail
        with pytest.raises(PeerLost, match="exited with code 2"):
            process.write(b"anybody?\n")


@requirement("process:lost:says-why")
async def test_a_peer_that_dies_mid_line_gives_its_whole_lines_and_no_half_one() -> None:
    async with opened("say:whole", "half-line", "die:9") as process:
        received: list[bytes] = []
        with pytest.raises(PeerLost) as caught:
            async for lines in process.lines():
                received += lines
        assert received == [b"whole"]
        assert caught.value.exit_code == -9
        assert "was killed by signal 9 (Killed) in the middle of a line (12 bytes of it came)" in str(caught.value)


@requirement("process:lost:grandchild-holds-pipes")
async def test_the_end_of_a_peer_is_seen_while_its_grandchild_holds_the_pipes() -> None:
    async with opened("child:session", "exit:7") as process:
        await told_pids(process, 1)
        with pytest.raises(PeerLost, match="exited with code 7"):
            await process.receive()


@requirement("process:lost:says-why")
async def test_a_peer_that_closes_its_output_is_lost_though_it_lives() -> None:
    async with opened("close-output", "sleep") as process:
        with pytest.raises(PeerLost, match="'standin' closed its output"):
            await process.receive()
        assert process.returncode is None


@requirement("process:lost:says-why")
async def test_writing_to_a_peer_that_reads_no_more_fails_at_once() -> None:
    async with opened("close-input", "say:closed", "sleep") as process:
        await next_line(process)
        with pytest.raises(PeerLost, match="'standin' reads no more"):
            process.write(b"hello\n")


async def test_what_the_block_raises_leaves_it_as_it_is() -> None:
    with pytest.raises(ValueError, match="mine"):
        async with opened("echo"):
            raise ValueError("mine")


# --- what it is given ---------------------------------------------------------------------------------------------


@requirement("process:environment:allow-list")
async def test_the_peer_gets_the_given_environment_and_its_mark_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("HARNESS_PROCESS_MARK", "of somebody around us")
    async with opened("environment", "echo") as process:
        seen = json.loads(await next_line(process))
        seen.pop("LC_CTYPE", None)  # the interpreter's own
        assert seen == {**ENVIRONMENT, "HARNESS_PROCESS_MARK": process.mark}
        assert environment_of(process.pid) == seen


async def test_the_peer_runs_where_it_is_told(tmp_path: Path) -> None:
    with anyio.fail_after(5):
        async with open_process(standin("say:up", "echo"), env=ENVIRONMENT, cwd=tmp_path) as process:
            await next_line(process)
            assert Path(f"/proc/{process.pid}/cwd").readlink() == tmp_path
