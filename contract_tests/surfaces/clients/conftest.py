"""The agents of peers.txt are found as a user's are."""

import os

import pytest

from contract_tests.peers_installed import peer_directories


@pytest.fixture(autouse=True)
def agents_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([*peer_directories(), os.environ["PATH"]]))
