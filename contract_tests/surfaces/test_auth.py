"""Who may call: Host and Origin before the token, tokens in constant time and in no output."""

from __future__ import annotations

import logging

import anyio
import pytest

from contract_tests.llm_suite import open_house, open_server
from contract_tests.requirements import requirement
from contract_tests.surfaces.http import client_of, problem_of
from harness.errors import ConfigError
from harness.surfaces.server import serve
from harness.surfaces.tokens import Token

SCRIPT = [[{"text": "hi"}]]
PATH = "/v1/conversations"


@requirement("R-K3")
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:1234", 200),  # a tunnel changes the port
        ("[::1]:80", 200),
        ("LOCALHOST", 200),
        ("rebound.example", 421),
        ("127.0.0.1.example", 421),
        ("127.0.0.1@rebound.example", 421),
        ("192.168.0.7", 421),
        ("", 421),
        ("[", 421),
    ],
)
async def test_a_loopback_server_answers_only_to_loopback_names(host: str, status: int) -> None:
    async with open_server(SCRIPT) as server, client_of(server, Host=host) as client:
        for path in (PATH, "/healthz"):
            answer = await client.get(path)
            assert answer.status_code == status
    if status != 200:
        assert problem_of(answer)["code"] == "forbidden"


@requirement("R-K3")
async def test_pages_may_call_only_from_origins_that_were_allowed() -> None:
    async with open_server(SCRIPT, allowed_origins=["https://mine.example"]) as server, client_of(server) as client:
        statuses = {
            origin: (await client.get(PATH, headers={"Origin": origin})).status_code
            for origin in ("https://mine.example", "https://evil.example", "null", server.url)
        }
    assert statuses == {"https://mine.example": 200, "https://evil.example": 403, "null": 403, server.url: 403}


@requirement("R-K3")
async def test_a_browser_may_ask_first_from_an_allowed_origin_only() -> None:
    ask = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    async with open_server(SCRIPT, allowed_origins=["https://mine.example"]) as server:
        async with client_of(server, token=None) as client:
            mine = await client.options(PATH, headers={"Origin": "https://mine.example", **ask})
            evil = await client.options(PATH, headers={"Origin": "https://evil.example", **ask})
            none = await client.options(PATH, headers=ask)
        async with client_of(server) as client:
            answer = await client.get(PATH, headers={"Origin": "https://mine.example"})

    assert (mine.status_code, evil.status_code, none.status_code) == (200, 403, 401)
    assert mine.headers["access-control-allow-origin"] == "https://mine.example"
    assert answer.headers["access-control-allow-origin"] == "https://mine.example"


@requirement("R-K3")
async def test_host_and_origin_are_judged_before_the_token() -> None:
    async with open_server(SCRIPT) as server, client_of(server, token=None) as client:
        found = {
            "host": await client.get(PATH, headers={"Host": "rebound.example"}),
            "origin": await client.get(PATH, headers={"Origin": "https://evil.example"}),
            "neither": await client.get(PATH),
        }
    assert {name: answer.status_code for name, answer in found.items()} == {"host": 421, "origin": 403, "neither": 401}


@requirement("R-K3")
async def test_without_the_right_bearer_token_nothing_but_health_is_answered() -> None:
    async with open_server(SCRIPT) as server, client_of(server, token=None) as client:
        secret = server.tokens[0].secret
        wrong = [
            "",
            "Bearer",
            "Bearer x",
            f"Bearer {secret}x",
            f"Bearer {secret[:-1]}",
            f"Basic {secret}",
            secret,
        ]
        answers = [await client.get(PATH, headers={"Authorization": value}) for value in wrong]
        answers += [await client.get("/openapi.json"), await client.post(PATH, json={}), await client.get("/nowhere")]
        health = await client.get("/healthz")
        right = await client.get(PATH, headers={"Authorization": f"bearer {secret}"})

    assert {(answer.status_code, problem_of(answer)["code"]) for answer in answers} == {(401, "unauthorized")}
    assert {answer.headers["www-authenticate"] for answer in answers} == {"Bearer"}
    assert (health.status_code, right.status_code) == (200, 200)


@requirement("R-K3")
async def test_a_server_for_others_needs_a_token_and_answers_to_addresses_and_given_names() -> None:
    async with open_house(SCRIPT) as house:
        with pytest.raises(ConfigError, match="token"):
            async with serve(house, host="0.0.0.0"):
                pass
        token = Token("given", "ann")
        with anyio.fail_after(5):
            async with serve(house, host="0.0.0.0", tokens=[token], allowed_hosts=["harness.example"]) as server:
                url = server.url.replace("0.0.0.0", "127.0.0.1")
                async with client_of(server) as client:
                    statuses = {
                        host: (await client.get(url + PATH, headers={"Host": host})).status_code
                        for host in ("192.168.0.7:80", "harness.example", "rebound.example", "localhost")
                    }
    assert statuses == {"192.168.0.7:80": 200, "harness.example": 200, "rebound.example": 421, "localhost": 200}


@requirement("R-K2")
async def test_the_token_is_in_no_answer_and_no_log_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_server(SCRIPT) as server, client_of(server) as client:
        secret = server.tokens[0].secret
        answers = [await client.get(path) for path in (PATH, "/openapi.json", "/nowhere", "/healthz")]
        answers.append(await client.get(PATH, headers={"Authorization": f"Bearer {secret}x"}))
        shown = repr(server)

    assert not any(secret in answer.text for answer in answers)
    assert secret not in caplog.text
    assert secret not in shown


async def test_a_port_that_is_taken_is_one_clear_error() -> None:
    async with open_house(SCRIPT) as house, serve(house) as server:
        with pytest.raises(ConfigError, match="port 0 takes a free one"):
            async with serve(house, port=int(server.url.rpartition(":")[2])):
                pass
        with pytest.raises(ConfigError, match=r"cannot listen on 'no\.such\.host\.invalid'"):
            async with serve(house, host="no.such.host.invalid", tokens=[Token("t", "ann")]):
                pass
