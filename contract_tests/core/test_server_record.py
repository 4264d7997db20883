"""How local clients find a server's token, and who else does not."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from contract_tests.requirements import requirement
from harness.errors import ConfigError
from harness.server_record import (
    ServerRecord,
    find_local_token,
    read_token_file,
    recorded,
    running_servers,
    runtime_directory,
)
from harness.wire.json_text import write_json

URL = "http://127.0.0.1:8123"


@pytest.fixture(autouse=True)
def own_runtime_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


@requirement("R-K4")
def test_a_record_is_private_to_its_user_and_goes_with_the_server() -> None:
    with recorded(URL, "secret") as path:
        assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
        assert path.parent == runtime_directory()
        found = {url: find_local_token(url) for url in (URL, "http://localhost:8123", "http://[::1]:8123/")}
        elsewhere = {url: find_local_token(url) for url in ("http://127.0.0.1:8124", "http://example.com:8123")}
    assert set(found.values()) == {"secret"}
    assert set(elsewhere.values()) == {None}
    assert not path.exists()
    assert find_local_token(URL) is None


def serve_and_die(url: str) -> None:
    """A server that leaves its record behind."""
    code = f"import os; from harness.server_record import recorded\nwith recorded({url!r}, 'old'): os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9


@requirement("cli:requests")
def test_only_servers_that_run_are_found() -> None:
    assert running_servers() == []
    with recorded(URL, "secret"), recorded("http://127.0.0.1:8124", "other"):
        serve_and_die("http://127.0.0.1:8125")
        assert running_servers() == [URL, "http://127.0.0.1:8124"]
    assert running_servers() == []


@requirement("R-K4")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_record_that_others_can_reach_is_refused(mode: int) -> None:
    with recorded(URL, "secret") as path:
        path.chmod(mode)
        with pytest.raises(ConfigError, match="chmod 600"):
            find_local_token(URL)


@requirement("R-K4")
def test_a_directory_that_others_can_reach_is_refused() -> None:
    with recorded(URL, "secret") as path:
        path.parent.chmod(0o755)
        with pytest.raises(ConfigError, match="chmod 700"):
            find_local_token(URL)
        with pytest.raises(ConfigError, match="chmod 700"), recorded("http://127.0.0.1:8124", "secret"):
            pass


@requirement("R-K4")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_what_another_user_planted_is_refused() -> None:
    with recorded(URL, "secret") as path:
        os.chown(path, 65534, -1)
        with pytest.raises(ConfigError, match="another user"):
            find_local_token(URL)
        os.chown(path, 0, -1)
        os.chown(path.parent, 65534, -1)
        with pytest.raises(ConfigError, match="another user"):
            find_local_token(URL)


@requirement("R-K4")
def test_the_token_of_a_server_that_died_is_given_to_nobody_and_its_record_is_replaced() -> None:
    serve_and_die(URL)
    assert (runtime_directory() / "8123.json").is_file()
    assert find_local_token(URL) is None
    with recorded(URL, "new"):
        assert find_local_token(URL) == "new"


def test_a_record_of_a_later_server_stays() -> None:
    with recorded(URL, "first"), recorded(URL, "second"):
        pass
    with recorded(URL, "first") as path:
        path.write_bytes(write_json(ServerRecord(url=URL, pid=1, token="other")))
    assert path.exists()


@requirement("R-K4")
def test_a_token_file_is_read_and_must_be_private(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("  my-token\n")
    file.chmod(0o600)
    assert read_token_file(file) == "my-token"
    file.chmod(0o640)  # as secrets are mounted into containers
    assert read_token_file(file) == "my-token"
    for mode in (0o644, 0o620):
        file.chmod(mode)
        with pytest.raises(ConfigError, match="chmod 600"):
            read_token_file(file)


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"caf\xc3\xa9", b"x" * 5000, b"a\nb"])
def test_a_token_file_without_one_usable_token_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="one token"):
        read_token_file(file)
    with pytest.raises(ConfigError, match="cannot read"):
        read_token_file(tmp_path / "missing")
