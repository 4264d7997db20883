"""`harness acp` with the connector `fake`, driven by the protocol's own Python client."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import acp
import anyio
import pytest
from acp.schema import EnvVariable, McpServerStdio, SseMcpServer

from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from contract_tests.surfaces.acp_agent.client import Person, scripted, started

PNG = "iVBORw0KGgo="
APPROVAL: dict[str, Any] = {
    "approval": {"tool": "Bash", "id": "p1", "call_id": "c1", "arguments": {"command": "rm x"}, "title": "Remove x"}
}
RUN: dict[str, Any] = {
    "internal_tool": {"name": "Bash", "call_id": "c1", "arguments": {"command": "rm x"}, "result_text": "gone"}
}
SERVER = ROOT / "contract_tests" / "peers" / "mcp_server.py"
BOOKS = McpServerStdio(name="books", command=sys.executable, args=[str(SERVER)], env=[EnvVariable(name="K", value="v")])


@requirement("acp-agent:updates")
async def test_a_turn_arrives_as_updates_and_ends_with_its_reason_and_usage(tmp_path: Path) -> None:
    script = [
        {"thinking": "Hm."},
        {"plan": [{"text": "Look", "status": "in_progress"}]},
        {"text": ["Hel", "lo."], "item_id": "m1"},
        {"message": "Hello.", "item_id": "m1"},
        {"internal_tool": {"name": "Read", "call_id": "r1", "arguments": {"file_path": "/x"}, "result_text": "text"}},
        {"notice": {"code": "retry", "text": "once more"}},
        {"usage": {"input_tokens": 7, "cached_input_tokens": 2, "output_tokens": 3}},
        {"end": "max_tokens"},
    ]
    async with started(tmp_path, *scripted(script)) as agent:
        session_id = await agent.new_session()
        answer = await agent.say(session_id)
        person = agent.person

    assert answer.stop_reason == "max_tokens"
    assert (answer.usage.input_tokens, answer.usage.cached_read_tokens, answer.usage.total_tokens) == (7, 2, 10)
    assert person.text == "Hello."
    thoughts = [update.content.text for update in person.of("agent_thought_chunk")]
    assert thoughts == ["Hm.", "(retry: once more)"]
    [plan] = person.of("plan")
    assert [(entry.content, entry.status) for entry in plan.entries] == [("Look", "in_progress")]
    [call] = person.of("tool_call")
    assert (call.tool_call_id, call.title, call.kind, call.status) == ("r1", "Read(/x)", "read", "in_progress")
    assert (call.raw_input, [place.path for place in call.locations]) == ({"file_path": "/x"}, ["/x"])
    [end] = person.of("tool_call_update")
    assert (end.tool_call_id, end.status, end.content[0].content.text) == ("r1", "completed", "text")


@requirement("acp-agent:stop-reasons")
@pytest.mark.parametrize(
    ("end", "told"), [("end_turn", "end_turn"), ("max_turns", "max_turn_requests"), ("refusal", "refusal")]
)
async def test_stop_reasons_are_those_of_the_protocol(tmp_path: Path, end: str, told: str) -> None:
    async with started(tmp_path, *scripted([{"text": "x"}, {"end": end}])) as agent:
        assert (await agent.say(await agent.new_session())).stop_reason == told


@requirement("acp-agent:permissions")
@pytest.mark.parametrize(
    ("choose", "statuses"),
    [
        ("allow_once", ["in_progress", "in_progress", "completed"]),
        ("allow_always", ["in_progress", "in_progress", "completed"]),
        ("deny", ["failed", "failed", "failed"]),
    ],
)
async def test_a_person_in_the_client_decides_among_the_options_that_are_offered(
    tmp_path: Path, choose: str, statuses: list[str]
) -> None:
    person = Person(choose=choose)
    script = [APPROVAL, RUN, {"text": "{{results.c1}}"}]
    async with started(tmp_path, *scripted(script), person=person) as agent:
        answer = await agent.say(await agent.new_session())

    assert answer.stop_reason == "end_turn"
    [(call, options)] = person.permissions
    assert [(one.option_id, one.kind) for one in options] == [
        ("allow_once", "allow_once"),
        ("allow_always", "allow_always"),
        ("deny", "reject_once"),
    ]
    assert (call.tool_call_id, call.title, call.kind) == ("c1", "Remove x", "execute")
    assert call.raw_input == {"command": "rm x"}
    assert [update.tool_call_id for update in person.of("tool_call")] == ["c1"]
    assert [update.status for update in person.of("tool_call_update")] == statuses
    assert choose in person.text


@requirement("acp-agent:permissions")
async def test_the_outcome_cancelled_cancels_the_turn(tmp_path: Path) -> None:
    person = Person(choose=None)
    async with started(tmp_path, *scripted([APPROVAL, {"text": "never"}]), person=person) as agent:
        session_id = await agent.new_session()
        assert (await agent.say(session_id)).stop_reason == "cancelled"
        assert person.text == ""
        assert person.of("tool_call_update")[-1].status == "failed"


@requirement("acp-agent:questions")
async def test_a_question_is_a_form_where_the_client_shows_forms(tmp_path: Path) -> None:
    questions = [
        {
            "id": "size",
            "text": "Which size?",
            "header": "Size",
            "options": [{"id": "s", "label": "Small"}, {"id": "l", "label": "Large", "description": "costs more"}],
        },
        {"id": "name", "text": "Whose?"},
    ]
    script = [{"question": {"id": "q1", "questions": questions}}, {"text": "{{results.q1}}"}]
    person = Person(fill={"size": "l", "name": "Ann"})
    async with started(tmp_path, *scripted(script), person=person, has_forms=True) as agent:
        assert (await agent.say(await agent.new_session())).stop_reason == "end_turn"
    [(_, mode)] = person.forms
    schema = mode.requested_schema.model_dump(by_alias=True, exclude_none=True)
    assert schema["required"] == ["size", "name"]
    assert [one["title"] for one in schema["properties"]["size"]["oneOf"]] == ["Small", "Large: costs more"]
    assert "Ann" in person.text

    person = Person()
    async with started(tmp_path, *scripted(script), person=person) as agent:
        assert (await agent.say(await agent.new_session())).stop_reason == "end_turn"
    assert person.forms == []
    assert person.text == "decline"


@requirement("acp-agent:cancel")
async def test_a_cancel_ends_the_prompt_and_the_session_goes_on(tmp_path: Path) -> None:
    hears = anyio.Event()
    person = Person(on_update=lambda _: hears.set())
    script = scripted([{"text": "I begin."}, {"hang": True}], [{"text": "Again."}])
    async with started(tmp_path, *script, person=person) as agent:
        session_id = await agent.new_session()
        answers: list[Any] = []

        async def prompt() -> None:
            answers.append(await agent.say(session_id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt)
            await hears.wait()
            with pytest.raises(acp.RequestError, match="runs already") as refused:
                await agent.say(session_id, "Me too.")
            await agent.conn.cancel(session_id=session_id)
        assert refused.value.data["code"] == "turn_in_progress"  # type: ignore[index]
        assert answers[0].stop_reason == "cancelled"
        assert (await agent.say(session_id)).stop_reason == "end_turn"
        assert person.text.endswith("Again.")


@requirement("acp-agent:cancel")
async def test_a_cancel_while_a_person_thinks_closes_the_call(tmp_path: Path) -> None:
    person = Person(choose="allow_once", may_answer=anyio.Event())
    async with started(tmp_path, *scripted([APPROVAL, RUN, {"text": "never"}]), person=person) as agent:
        session_id = await agent.new_session()
        answers: list[Any] = []
        async with anyio.create_task_group() as tasks:

            async def prompt() -> None:
                answers.append(await agent.say(session_id))

            tasks.start_soon(prompt)
            await person.asked.wait()
            await agent.conn.cancel(session_id=session_id)
        assert answers[0].stop_reason == "cancelled"
        assert person.of("tool_call_update")[-1].status == "failed"
        # it comes too late, and nobody minds
        assert person.may_answer is not None
        person.may_answer.set()


@requirement("acp-agent:load")
async def test_another_process_lists_loads_and_goes_on_with_a_session(tmp_path: Path) -> None:
    script = scripted([{"text": "One."}, RUN], [{"text": "Two."}])
    async with started(tmp_path, *script) as agent:
        session_id = await agent.new_session()
        await agent.new_session()  # without a prompt there is nothing to come back to
        await agent.say(session_id, "First  words")
        before = [update for update in agent.person.updates if update.session_update != "user_message_chunk"]

    async with started(tmp_path, *script) as agent:
        listed = (await agent.conn.list_sessions(cwd=str(agent.cwd))).sessions
        assert [(one.session_id, one.title, one.cwd) for one in listed] == [(session_id, "First words", str(agent.cwd))]
        assert (await agent.conn.list_sessions(cwd="/elsewhere")).sessions == []
        await agent.conn.load_session(session_id=session_id, cwd=str(agent.cwd), mcp_servers=[])
        replayed, agent.person.updates = agent.person.updates, []
        assert [update.content.text for update in replayed if update.session_update == "user_message_chunk"] == [
            "First  words"
        ]
        assert replayed[1:] == before
        assert (await agent.say(session_id)).stop_reason == "end_turn"
        assert agent.person.text == "Two."

    async with started(tmp_path, *script) as agent:
        await agent.conn.resume_session(session_id=session_id, cwd=str(agent.cwd))
        assert agent.person.updates == []
        await agent.conn.close_session(session_id=session_id)
        with pytest.raises(acp.RequestError, match="no session") as unknown:
            await agent.say(session_id)
        assert unknown.value.code == -32002
        await agent.conn._conn.send_request("session/delete", {"sessionId": session_id})
        assert (await agent.conn.list_sessions()).sessions == []


@requirement("acp-agent:modes")
async def test_the_policys_modes_are_the_sessions_modes(tmp_path: Path) -> None:
    person = Person(choose="deny")
    script = scripted([APPROVAL, {"text": "{{results.p1}} "}], repeat=True)
    async with started(tmp_path, *script, "--mode", "dont_ask", person=person) as agent:
        opened = await agent.conn.new_session(cwd=str(agent.cwd), mcp_servers=[])
        session_id = opened.session_id
        assert opened.modes.current_mode_id == "dont_ask"
        assert {one.id for one in opened.modes.available_modes} >= {"default", "read_only", "bypass"}
        await agent.say(session_id)
        assert (person.permissions, "deny" in person.text) == ([], True)

        await agent.conn.set_session_mode(session_id=session_id, mode_id="bypass")
        assert person.of("config_option_update")[-1].config_options[0].current_value == "bypass"
        await agent.say(session_id)
        assert (person.permissions, "allow_once" in person.text) == ([], True)

        options = await agent.conn.set_config_option(session_id=session_id, config_id="mode", value="default")
        assert options.config_options[0].current_value == "default"
        assert person.of("current_mode_update")[-1].current_mode_id == "default"
        await agent.say(session_id)
        assert len(person.permissions) == 1

        with pytest.raises(acp.RequestError, match="no value 'yolo'"):
            await agent.conn.set_session_mode(session_id=session_id, mode_id="yolo")


@requirement("acp-agent:models")
async def test_models_and_effort_can_be_chosen_where_the_connector_can_change_them(tmp_path: Path) -> None:
    async with started(tmp_path, *scripted(), "-m", "small", "-m", "large") as agent:
        opened = await agent.conn.new_session(cwd=str(agent.cwd), mcp_servers=[])
        shown = {one.id: (one.category, one.current_value) for one in opened.config_options}
        assert shown == {
            "mode": ("mode", "default"),
            "model": ("model", "small"),
            "effort": ("thought_level", "default"),
        }
        session_id = opened.session_id
        for config_id, value in (("model", "large"), ("effort", "high")):
            await agent.conn.set_config_option(session_id=session_id, config_id=config_id, value=value)
        assert (await agent.say(session_id)).stop_reason == "end_turn"
    cannot = scripted(capabilities={"turn_options": []})
    async with started(tmp_path, *cannot, "-m", "small", "-m", "large") as agent:
        opened = await agent.conn.new_session(cwd=str(agent.cwd), mcp_servers=[])
        assert [one.id for one in opened.config_options] == ["mode"]


@requirement("acp-agent:content")
async def test_what_a_connector_cannot_carry_is_refused_and_files_become_text(tmp_path: Path) -> None:
    cannot = scripted(capabilities={"images_in_prompt": False})
    async with started(tmp_path, *cannot) as agent:
        assert agent.initialized.agent_capabilities.prompt_capabilities.image is False
        session_id = await agent.new_session()
        with pytest.raises(acp.RequestError, match="block 2 of the prompt is an image") as refused:
            blocks = [acp.text_block("Look:"), acp.image_block(PNG, "image/png")]
            await agent.conn.prompt(session_id=session_id, prompt=blocks)
        assert (refused.value.code, refused.value.data["code"]) == (-32602, "content_not_supported")  # type: ignore[index]
        file = acp.embedded_text_resource("file:///a/b.txt", "the text")
        blocks = [acp.resource_link_block("c.py", "file:///a/c.py"), acp.resource_block(file)]
        await agent.conn.prompt(session_id=session_id, prompt=blocks)
        for part in ("[@c.py](file:///a/c.py)", "[@b.txt](file:///a/b.txt)", "the text"):
            assert part in agent.person.text


@requirement("acp-agent:servers")
@pytest.mark.parametrize("delegates", [True, False])
async def test_the_clients_mcp_servers_reach_the_agent(tmp_path: Path, delegates: bool) -> None:
    call = {"name": "echo", "id": "e1", "arguments": {"q": "a book"}, "source": "books", "result": "from the peer"}
    able = {} if delegates else {"delegatable_tool_sources": []}
    script = scripted([{"calls": [call]}, {"text": "{{results.e1}}"}], [{"text": "."}], capabilities=able)
    async with started(tmp_path, *script) as agent:
        session_id = await agent.new_session(mcp_servers=[BOOKS])
        await agent.say(session_id)
        person = agent.person
    assert person.text == ("from the peer" if delegates else "a book")
    assert [update.title for update in person.of("tool_call")] == ["echo"]
    assert person.of("tool_call_update")[-1].status == "completed"
    assert person.of("tool_call_update")[-1].content[0].content.text == ("from the peer" if delegates else "a book")

    async with started(tmp_path, *script) as agent:
        other = BOOKS.model_copy(update={"name": "films"})
        with pytest.raises(acp.RequestError, match="begun without the MCP server 'films'"):
            await agent.conn.load_session(session_id=session_id, cwd=str(agent.cwd), mcp_servers=[other])
        await agent.conn.load_session(session_id=session_id, cwd=str(agent.cwd), mcp_servers=[BOOKS])


@requirement("acp-agent:servers")
async def test_a_server_that_cannot_be_used_is_an_error_and_never_left_out(tmp_path: Path) -> None:
    routed = scripted(capabilities={"delegatable_tool_sources": []})
    async with started(tmp_path, *routed) as agent:
        sse = SseMcpServer(type="sse", name="old", url="http://127.0.0.1:1/sse", headers=[])
        with pytest.raises(acp.RequestError, match="'old' has the transport 'sse'"):
            await agent.new_session(mcp_servers=[sse])
        gone = McpServerStdio(name="gone", command="/no/such/program", args=[], env=[])
        with pytest.raises(acp.RequestError, match="gone"):
            await agent.new_session(mcp_servers=[gone])
        with pytest.raises(acp.RequestError, match="'cwd' must be an absolute path"):
            await agent.new_session(cwd="here")
        assert (await agent.say(await agent.new_session())).stop_reason == "end_turn"


@requirement("acp-agent:errors")
async def test_a_failed_turn_is_an_error_with_our_code(tmp_path: Path) -> None:
    failing = {"error": {"code": "provider_error", "message": "no key", "detail": {"reason": "auth"}}}
    async with started(tmp_path, *scripted([{"text": "x"}, failing], [{"die": "now"}])) as agent:
        session_id = await agent.new_session()
        with pytest.raises(acp.RequestError, match="no key") as failed:
            await agent.say(session_id)
        assert (failed.value.code, failed.value.data["code"]) == (-32000, "provider_error")  # type: ignore[index]
        with pytest.raises(acp.RequestError) as lost:
            await agent.say(session_id)
        assert (lost.value.code, lost.value.data["code"]) == (-32603, "peer_lost")  # type: ignore[index]
        with pytest.raises(acp.RequestError, match="nothing to authenticate"):
            await agent.conn.authenticate(method_id="key")
        with pytest.raises(acp.RequestError) as unknown:
            await agent.conn._conn.send_request("session/teleport", {})
        assert unknown.value.code == -32601


@requirement("acp-agent:permissions")
async def test_always_is_offered_by_this_host_where_the_peer_has_nothing_that_lasts(tmp_path: Path) -> None:
    once = [{"id": "yes", "kind": "allow_once"}, {"id": "no", "kind": "deny"}]
    approval = {"approval": {**APPROVAL["approval"], "options": once}}
    person = Person(choose="always_in_this_conversation")
    script = scripted([approval, {"text": "{{results.p1}}."}], repeat=True)
    async with started(tmp_path, *script, person=person) as agent:
        session_id = await agent.new_session()
        await agent.say(session_id)
        await agent.say(session_id)
    assert person.text == "yes.yes."
    [(_, options)] = person.permissions
    assert [one.option_id for one in options] == ["yes", "no", "always_in_this_conversation"]


@requirement("acp-agent:permissions", "acp-agent:servers")
@pytest.mark.parametrize(("choose", "said"), [("allow_once", "a book"), ("deny", "A person rejected this.")])
async def test_a_policy_has_the_person_asked_about_a_clients_own_tool(tmp_path: Path, choose: str, said: str) -> None:
    (tmp_path / "policy.toml").write_text('ask = ["echo"]\n')
    call = {"name": "echo", "id": "e1", "arguments": {"q": "a book"}}
    able = {"delegatable_tool_sources": []}
    script = scripted([{"calls": [call]}, {"text": "{{results.e1}}"}], capabilities=able)
    person = Person(choose=choose)
    policy = ["--policy", str(tmp_path / "policy.toml")]
    async with started(tmp_path, *script, *policy, person=person) as agent:
        await agent.say(await agent.new_session(mcp_servers=[BOOKS]))
    [(asked, _)] = person.permissions
    assert [asked.tool_call_id] == [update.tool_call_id for update in person.of("tool_call")]
    assert said in person.text


@requirement("acp-agent:load")
async def test_a_turn_that_a_dead_process_left_is_cancelled_before_it_is_replayed(tmp_path: Path) -> None:
    hears = anyio.Event()
    script = scripted([{"text": "I begin."}, APPROVAL], [{"text": "Two."}], resume="exact")
    person = Person(choose="allow_once", may_answer=anyio.Event(), on_update=lambda _: hears.set())
    async with started(tmp_path, *script, person=person) as agent:
        session_id = await agent.new_session()
        async with anyio.create_task_group() as tasks:

            async def prompt() -> None:
                with pytest.raises(ConnectionError):
                    await agent.say(session_id)

            tasks.start_soon(prompt)
            await person.asked.wait()
            agent.process.kill()

    async with started(tmp_path, *script) as agent:
        await agent.conn.load_session(session_id=session_id, cwd=str(agent.cwd), mcp_servers=[])
        assert agent.person.text == "I begin."
        assert [update.status for update in agent.person.of("tool_call_update")][-1] == "failed"
        assert (await agent.say(session_id)).stop_reason == "end_turn"
        assert agent.person.text.endswith("Two.")


@requirement("acp-agent:load")
async def test_a_session_is_forked_where_the_connector_can_and_is_not_another_connectors(tmp_path: Path) -> None:
    script = scripted([{"text": "One."}], [{"text": "Two."}], capabilities={"fork": True})
    async with started(tmp_path, *script) as agent:
        assert agent.initialized.agent_capabilities.session_capabilities.fork is not None
        session_id = await agent.new_session()
        await agent.say(session_id)
        fork = (await agent.conn.fork_session(session_id=session_id, cwd=str(agent.cwd), mcp_servers=[])).session_id
        assert fork != session_id
        await agent.say(fork)
        assert agent.person.text == "One.Two."

    variant = [word.replace("fake", "fake:ask") if word == "fake" else word for word in script]
    async with started(tmp_path, *variant) as agent:
        assert (await agent.conn.list_sessions()).sessions == []
        with pytest.raises(acp.RequestError, match="harness acp --connector fake"):
            await agent.conn.load_session(session_id=session_id, cwd=str(agent.cwd), mcp_servers=[])
        with pytest.raises(acp.RequestError) as unknown:
            await agent.conn.load_session(session_id="c_nothing", cwd=str(agent.cwd), mcp_servers=[])
        assert unknown.value.code == -32002
