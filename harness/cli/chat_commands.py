"""What may be typed in a chat beside messages: `/tools`, `/cost` and the like, and what each tells."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from harness.cli.activity import usage_text
from harness.cli.chat_room import Approvals, Room
from harness.errors import InvalidArgument


@dataclass(frozen=True)
class Command:
    name: str
    takes: str
    about: str
    do: Callable[[Room, Approvals, str], Awaitable[list[str]]]
    """Gives the lines that are told."""


async def _help(room: Room, approvals: Approvals, argument: str) -> list[str]:
    told = [f"{f'/{one.name} {one.takes}'.strip():<26} {one.about}" for one in COMMANDS.values()]
    told += [f"{'/quit':<26} leave; so does Ctrl-D, and Ctrl-C twice"]
    return [
        *told,
        'A line that ends with \\ goes on in the next one; so does everything between two lines of """.',
        "Ctrl-C cancels the answer. A message that begins with / is typed with two of them.",
    ]


async def _tools(room: Room, approvals: Approvals, argument: str) -> list[str]:
    told = [
        f"{tool.name:<26} {(tool.description.splitlines() or [''])[0]}{' (read-only)' if tool.read_only else ''}"
        for tool in room.tools
    ]
    return told or ["no tools of yours: start with --tools, --mcp-config, --openapi or --ujmw"]


async def _cost(room: Room, approvals: Approvals, argument: str) -> list[str]:
    return [f"this conversation, {usage_text(await room.usage())}"]


async def _approve(room: Room, approvals: Approvals, argument: str) -> list[str]:
    if argument:
        approvals.use(argument)
    return [f"what the policy leaves open: {approvals.mode}"]


async def _model(room: Room, approvals: Approvals, argument: str) -> list[str]:
    if argument:
        room.use_model(None if argument == "-" else argument)
    begun_with = (await room.info()).model or "the connector's own"
    return [f"model: {room.model or begun_with}"]


async def _info(room: Room, approvals: Approvals, argument: str) -> list[str]:
    info = await room.info()
    model = room.model or info.model or "the connector's own model"
    return [f"conversation {info.conversation_id}, {info.turns} turn(s), connector '{info.connector}', {model}"]


COMMANDS = {
    one.name: one
    for one in (
        Command("help", "", "this list", _help),
        Command("tools", "", "your tools that the model may call", _tools),
        Command("cost", "", "tokens and money so far", _cost),
        Command("approve", "[ask|allow|deny]", "who answers what the policy leaves open", _approve),
        Command("model", "[NAME|-]", "the model of the turns to come; - is that of the beginning", _model),
        Command("info", "", "which conversation this is", _info),
    )
}
LEAVING = frozenset({"quit", "exit"})


def command_of(text: str) -> tuple[Command | None, str]:
    """The command and its argument; null leaves the chat.

    Raises:
        InvalidArgument: there is no such command.
    """
    name, _, argument = text.removeprefix("/").partition(" ")
    if name in LEAVING:
        return None, ""
    command = COMMANDS.get(name)
    if command is None:
        raise InvalidArgument(f"no command '/{name}'; /help lists them, and //{name} is a message")
    return command, argument.strip()
