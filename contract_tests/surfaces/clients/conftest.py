"""Libraries that find the agents of peers.txt behind their server, and talk to nobody else."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from contract_tests.peers_installed import path_with_peers


@pytest.fixture(autouse=True)
def agents_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user's are."""
    monkeypatch.setenv("PATH", path_with_peers(os.environ["PATH"]))


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No library reports to its maker, whatever the developer's environment says."""
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    connect, look_up = socket.socket.connect, socket.getaddrinfo
    strangers: list[Any] = []

    def check(host: Any) -> None:
        if (host.decode() if isinstance(host, bytes) else host) not in ("127.0.0.1", "::1", "localhost", None):
            strangers.append(host)
            raise ConnectionRefusedError(f"a client library wants to talk to '{host}'")

    def checked_connect(self: socket.socket, address: Any) -> None:
        check(None if self.family == socket.AF_UNIX else address[0])
        connect(self, address)

    def checked_look_up(host: Any, *arguments: Any, **more: Any) -> Any:
        check(host)
        return look_up(host, *arguments, **more)

    monkeypatch.setattr(socket.socket, "connect", checked_connect)
    monkeypatch.setattr(socket, "getaddrinfo", checked_look_up)
    yield
    assert strangers == []
