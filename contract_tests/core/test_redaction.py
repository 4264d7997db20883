"""Secrets by their value: in errors, notices, raw lines and log lines, whoever quotes them."""

from __future__ import annotations

import json
import logging

import anyio
import pytest

from contract_tests.orchestrator.puppet import Puppet
from contract_tests.requirements import requirement
from harness.cli.logs import set_up_logs
from harness.contract import ConversationOptions, TextBlock
from harness.contract.output import Notice, Raw, TextDelta
from harness.errors import PeerLost, ProviderError
from harness.local import LocalHarness
from harness.registry import Registry
from harness.surfaces.problems import problem_response
from harness.trace.redaction import Redactor, secrets_of_environment, secrets_of_options
from harness.turn.events import notice, raw, text_delta

KEY, OPTION = "sk-live-0123456789", 'quo"ted-secret-42'


@requirement("R-K2")
async def test_no_secret_of_environment_or_options_leaves_in_an_error_a_notice_or_a_raw_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", KEY)
    peer = Puppet()
    options = ConversationOptions(
        connector="puppet", output_detail="raw", connector_options_json=json.dumps({"headers": {"X-Api-Key": OPTION}})
    )
    with anyio.fail_after(5):
        async with LocalHarness(Registry({"puppet": peer})) as llm:
            conversation_id = await llm.begin_conversation(options)
            turn_id = await llm.submit_user_message(conversation_id, [TextBlock(text="go")])
            await peer.started.wait()
            peer.emit(
                notice("retry", f"401 with {KEY}"),
                raw("http", "out", json.dumps({"x-api-key": OPTION})),
                text_delta(f"the model says {KEY}"),
            )
            peer.fail(PeerLost(f"refused key {KEY}", stderr_tail=f"Authorization: Bearer {OPTION}\n"))
            state = await llm.poll_turn(conversation_id, turn_id)
    shown = {type(item): item for item in state.new_output_items}
    assert state.error is not None
    secret_free = [state.error.to_json(), shown[Notice].to_json(), shown[Raw].to_json()]
    assert not any(secret in text for secret in (KEY, OPTION, json.dumps(OPTION)[1:-1]) for text in secret_free)
    assert all("[secret]" in text for text in secret_free)
    assert state.error.message == "refused key [secret]"
    assert "Bearer [secret]" in (state.error.detail_json or "")
    assert KEY in shown[TextDelta].to_json()  # the model's own words pass as they are


@requirement("R-K2")
@pytest.mark.parametrize("verbose", [True, False])
def test_no_log_line_has_a_secret(
    verbose: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOST_TOKEN", KEY)
    root = logging.getLogger()
    before = root.handlers, root.level
    root.handlers = []
    try:
        set_up_logs(verbose=verbose)
        try:
            raise ValueError(f"cannot use {KEY}")
        except ValueError:
            logging.getLogger("harness.x").exception("request with %s failed", KEY)
    finally:
        root.handlers, level = before
        root.setLevel(level)
    told = capsys.readouterr().err
    assert "request with [secret] failed" in told
    assert KEY not in told
    assert ("ValueError: cannot use [secret]" in told) == verbose


@requirement("R-K2")
def test_no_problem_over_http_has_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_PASSWORD", KEY)
    body = problem_response(ProviderError(f"wrong key {KEY}", reason="auth", tried=[KEY, {"deep": KEY}])).body
    assert KEY.encode() not in bytes(body)
    assert bytes(body).count(b"[secret]") == 3


@requirement("R-K2")
def test_secrets_are_found_by_what_they_are_called() -> None:
    environment = {
        "OPENAI_API_KEY": "a",
        "GH_TOKEN": "b",
        "DB_PASSWORD": "c",
        "PATH": "d",
        "KEYBOARD": "e",
        "MONKEY": "f",
    }
    assert list(secrets_of_environment(environment)) == ["a", "b", "c", "f"]
    options = {
        "key": "a",
        "model": "x",
        "headers": {"Authorization": "b", "Accept": "x"},
        "env": [{"name": "TOKEN", "value": "c"}, {"name": "HOME", "value": "x"}],
        "credentials": {"user": "d", "more": ["e"]},
    }
    found = set(secrets_of_options(json.dumps(options)))
    assert found == {"a", "b", "c", "d", "e"}
    assert list(secrets_of_options(None)) == []


@requirement("R-K2")
def test_longer_secrets_go_first_and_short_values_are_words() -> None:
    redactor = Redactor(["abcdefgh", "abcdefgh-and-more", "true"])
    assert redactor.text("x abcdefgh-and-more y abcdefgh true") == "x [secret] y [secret] true"
    assert Redactor([]).text("as it is") == "as it is"
