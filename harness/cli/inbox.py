"""What `harness requests` does: reads `GET /v1/requests` and answers by the whole identity of a request."""

from __future__ import annotations

import json
from collections.abc import Iterator

import anyio
import typer

from harness.cli.activity import call_text
from harness.cli.requests import AnswerArguments
from harness.cli.terminal import printable
from harness.contract.content import as_content
from harness.contract.requests import HostRequest, HostResponse, OpenRequest, QuestionAction, RequestKind
from harness.errors import InvalidArgument, UnknownRequest
from harness.orchestrator.approvals import answer_to_question
from harness.remote import RemoteHarness
from harness.server_record import running_servers


def run_list(url: str | None, *, as_json: bool) -> None:
    async def waiting() -> list[OpenRequest]:
        async with RemoteHarness(url or _only_server()) as server:
            return await server.list_requests()

    found = anyio.run(waiting)
    if as_json:
        typer.echo(json.dumps([one.to_dict() for one in found]))
        return
    for one in found:
        for line in _lines(one):
            typer.echo(printable(line))


def run_answer(arguments: AnswerArguments) -> None:
    """Hands the answer in.

    Raises:
        UnknownRequest: nothing of that name waits.
        InvalidArgument: an answer that does not fit the request.
    """
    ids = arguments.request.split("/")
    if len(ids) != 3:
        raise InvalidArgument(
            f"'{arguments.request}' names no request: write CONVERSATION/TURN/REQUEST, as 'list' does"
        )
    conversation_id, turn_id, request_id = ids

    async def answer() -> None:
        async with RemoteHarness(arguments.url or _only_server()) as server:
            open_now = {_name(one): one.request for one in await server.list_requests()}
            request = open_now.get(arguments.request)
            if request is None:
                names = ", ".join(f"'{name}'" for name in open_now) or "nothing"
                raise UnknownRequest(f"no open request '{arguments.request}'; waiting: {names}")
            await server.submit_responses(conversation_id, turn_id, [_response(request, request_id, arguments)])

    anyio.run(answer)


def _only_server() -> str:
    """The server that is meant when none is named.

    Raises:
        InvalidArgument: this user runs none on this machine, or several.
    """
    found = running_servers()
    if not found:
        raise InvalidArgument("you run no server on this machine: type 'harness serve', or name one with --url")
    if len(found) > 1:
        raise InvalidArgument(f"you run several servers, name one with --url: {', '.join(found)}")
    return found[0]


def _response(request: HostRequest, request_id: str, arguments: AnswerArguments) -> HostResponse:
    if request.kind == RequestKind.APPROVAL:
        return HostResponse(
            request_id=request_id,
            selected_option=arguments.choice,
            reason=arguments.reason,
            updated_arguments_json=arguments.arguments,
        )
    if request.kind == RequestKind.TOOL_CALL:
        if arguments.result is None:
            raise InvalidArgument(f"'{arguments.request}' is a tool call: give its result with --result")
        return HostResponse(request_id=request_id, content=as_content(arguments.result), is_error=arguments.is_error)
    if arguments.is_declined:
        return HostResponse(request_id=request_id, action=QuestionAction.DECLINE, reason=arguments.reason)
    given: dict[str, list[str]] = {}
    for reply in arguments.replies:
        question, sign, text = reply.partition("=")
        if not sign:
            raise InvalidArgument(f"--reply: '{reply}' is no QUESTION=ANSWER")
        given.setdefault(question, []).append(text)
    answers = [found for question in request.questions if (found := answer_to_question(question, given)) is not None]
    if len(answers) < len(request.questions):
        missing = [
            question.id for question in request.questions if question.id not in {one.question_id for one in answers}
        ]
        raise InvalidArgument(f"question '{missing[0]}' has no answer: add --reply {missing[0]}=..., or --decline")
    return HostResponse(request_id=request_id, action=QuestionAction.ACCEPT, answers=answers)


def _name(one: OpenRequest) -> str:
    return f"{one.conversation_id}/{one.turn_id}/{one.request.request_id}"


def _lines(one: OpenRequest) -> Iterator[str]:
    request = one.request
    what = call_text(request.tool_name, request.arguments_json) if request.tool_name else request.title or ""
    yield f"{_name(one)}  {request.kind}  {what}"
    for option in request.options:
        yield f"    {option.id}: {option.label or str(option.kind).replace('_', ' ')}"
    for question in request.questions:
        yield f"    {question.id}: {question.text}"
        for choice in question.options:
            yield f"        {choice.id}: {choice.label}"
