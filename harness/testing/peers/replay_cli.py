"""Plays a recorded CLI over real pipes, and its requests to a bridge. Standard library only.

replay_cli RECORDING STATE SIZES [ARGUMENT...]: STATE is a file that the processes of one conversation pass on, SIZES
are those of the pieces in which it speaks, such as `7,1,300`; empty: line by line.

What we send is matched by meaning: parsed JSON, ids bound to those of the recording when they first appear. What does
not fit ends the process with code 97 and says precisely where.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import signal
import sys
import termios
import threading
import time
from array import array
from itertools import cycle
from pathlib import Path
from queue import Queue
from typing import Any, TypeAlias, cast

from harness.testing.peers.framing import Framing, framed, messages_in
from harness.testing.peers.replay_mcp import McpPlayer, port_in

Json: TypeAlias = Any
Object: TypeAlias = "dict[str, Json]"
DIVERGED = 97
COMPLAINTS = ".complaints"
_AHEAD = 6
"""So many of our messages may come in another order than recorded."""
_TOGETHER_MS = 1
_ID = re.compile(r"<(?:id|port) \d+>|<directory>|<directory-name>|<python>|<harness>|<key>|<home>|<program>")


class Difference(Exception):
    """Where and how a message differs from the recorded one."""


class Names:
    """Ids of the recording and of now."""

    def __init__(self, live: dict[str, str]) -> None:
        self.live = live

    def match(self, recorded: Json, found: Json, path: str = "") -> dict[str, str]:
        """New pairs of ids.

        Raises:
            Difference: anything else differs.
        """
        if isinstance(recorded, dict) and isinstance(found, dict):
            return self._objects(cast(Object, recorded), cast(Object, found), path)
        if isinstance(recorded, list) and isinstance(found, list):
            return self._lists(cast("list[Json]", recorded), cast("list[Json]", found), path)
        if isinstance(recorded, str) and isinstance(found, str):
            return self._texts(recorded, found, path)
        if type(cast(object, recorded)) is not type(cast(object, found)) or recorded != found:
            raise Difference(f"at '{path}': expected {_shown(recorded)}, got {_shown(found)}")
        return {}

    def _objects(self, recorded: Object, found: Object, path: str) -> dict[str, str]:
        if recorded.keys() != found.keys():
            gone, new = sorted(recorded.keys() - found.keys()), sorted(found.keys() - recorded.keys())
            raise Difference(f"at '{path}': missing {gone}, unexpected {new}")
        bound: dict[str, str] = {}
        for key in recorded:
            _join(bound, self.match(recorded[key], found[key], f"{path}/{key}"), f"{path}/{key}")
        return bound

    def _lists(self, recorded: list[Json], found: list[Json], path: str) -> dict[str, str]:
        if len(recorded) != len(found):
            raise Difference(f"at '{path}': expected {len(recorded)} entries, got {len(found)}")
        bound: dict[str, str] = {}
        for number, (one, other) in enumerate(zip(recorded, found, strict=True)):
            _join(bound, self.match(one, other, f"{path}/{number}"), f"{path}/{number}")
        return bound

    def spoken(self, text: str) -> str:
        """A recorded line with the ids of now; those of the peer itself stay as recorded, and must come back so."""
        return _ID.sub(lambda found: self.live.setdefault(found[0], found[0]), text)

    def _texts(self, recorded: str, found: str, path: str) -> dict[str, str]:
        names = _ID.findall(recorded)
        pattern = "(.+?)".join(re.escape(part) for part in _ID.split(recorded))
        match = re.fullmatch(pattern, found, re.DOTALL)
        if match is None:
            raise Difference(f"at '{path}': expected {_shown(recorded)}, got {_shown(found)}")
        bound: dict[str, str] = {}
        for name, value in zip(names, match.groups(), strict=True):
            _join(bound, {name: value}, path)
            if self.live.get(name, value) != value:
                raise Difference(f"at '{path}': expected the id {self.live[name]!r}, got {value!r}")
        return bound


def _join(bound: dict[str, str], more: dict[str, str], path: str) -> None:
    """One name means one thing in a message."""
    for name, value in more.items():
        if bound.setdefault(name, value) != value:
            raise Difference(f"at '{path}': expected '{name}' to be {bound[name]!r} again, got {value!r}")


def _shown(value: Json) -> str:
    return repr(str(value)[:200])


class State:
    """What the processes of one conversation pass on: how many there were, and the ids that are bound."""

    def __init__(self, path: Path) -> None:
        self._path = path
        text = path.read_text(encoding="utf-8") if path.exists() else '{"processes": 0, "live": {}}'
        kept: Object = json.loads(text)
        self._processes: int = kept["processes"]
        self.live: dict[str, str] = kept["live"]

    def begin_process(self) -> int:
        """How many there were before this one."""
        self._processes += 1
        self.keep()
        return self._processes - 1

    def keep(self) -> None:
        """Whole or not at all: this process may be killed at any time, and the next one reads it."""
        whole = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        whole.write_text(json.dumps({"processes": self._processes, "live": self.live}), encoding="utf-8")
        whole.replace(self._path)


def records_of_run(recording: str, state: State) -> tuple[Object, list[Object]]:
    """The header, and the records of the next process."""
    header, *records = [json.loads(line) for line in Path(recording).read_text(encoding="utf-8").split("\n") if line]
    number = state.begin_process()
    runs: list[list[Object]] = []
    for record in records:
        if "start" in record:
            runs.append([])
        runs[-1].append(record)
    if number >= len(runs):
        complain(f"the recording has {len(runs)} processes, and this is number {number + 1}")
    return header, runs[number]


def complain(text: str) -> None:
    """To the connector, which may hide it, and beside the state, where the replay looks."""
    told = f"replay diverged: {text}"
    with Path(f"{sys.argv[2]}{COMPLAINTS}").open("a", encoding="utf-8") as complaints:
        complaints.write(told + "\n")
    sys.stderr.write(told + "\n")
    sys.stderr.flush()
    os._exit(DIVERGED)


class Voice:
    """Writes to stdout: what was said at one time together, or in pieces of these sizes in turn."""

    def __init__(self, sizes: list[int]) -> None:
        self._sizes = cycle(sizes) if sizes else None
        self._said = bytearray()
        self._at = 0

    def say(self, text: str, at: int, framing: Framing = "line") -> None:
        if self._sizes is None and at - self._at > _TOGETHER_MS:
            self.flush()
            wait_until_read(sys.stdout.fileno())
        self._at = at
        self._said += framed(text.encode("utf-8", "surrogateescape"), framing)

    def flush(self) -> None:
        said, self._said = memoryview(bytes(self._said)), bytearray()
        while said:
            size = len(said) if self._sizes is None else next(self._sizes)
            sys.stdout.buffer.write(said[:size])
            sys.stdout.buffer.flush()
            said = said[size:]
            if said:
                wait_until_read(sys.stdout.fileno())


def wait_until_read(pipe: int) -> None:
    """What lies in the pipe together would be read together. Nothing tells a writer that its pipe is empty."""
    unread, reader = array("i", [1]), select.poll()
    reader.register(pipe, 0)  # tells only that it is gone
    while unread[0] and not reader.poll(0):
        fcntl.ioctl(pipe, termios.FIONREAD, unread)
        time.sleep(0.0001)


class Replay:
    """One process of the recording."""

    def __init__(self, records: list[Object], state: State, voice: Voice) -> None:
        self._state = state
        self._voice = voice
        self._records = records
        self._open = [number for number, record in enumerate(records) if record.get("from") == "host"]
        self._at = 0
        self._heard: Queue[tuple[int | None, Json] | None] = Queue()
        self._bridge = McpPlayer(lambda exchange, message: self._heard.put((exchange, message)))
        self._bridge_port: int | None = None
        self._left = {record["exchange"] for record in records if record.get("end") == "left"}
        self.names = Names(state.live)

    def run(self) -> None:
        """Speaks and listens until stdin ends."""
        threading.Thread(target=self._listen, daemon=True).start()
        self.speak()
        while True:
            if not self._open:
                self.end()
            heard = self._heard.get()
            if heard is None:
                return
            self._hear(*heard)
            self.speak()

    def _listen(self) -> None:
        for message, _ in messages_in(sys.stdin.buffer):
            text = message.decode("utf-8", "surrogateescape")
            self.learn_bridge(text)
            self._heard.put((None, json.loads(text)))
        self._heard.put(None)

    def learn_bridge(self, text: str) -> None:
        self._bridge_port = self._bridge_port or port_in(text)

    def speak(self) -> None:
        """What the peer said up to the next message of ours that has not come yet."""
        wanted = self._open[0] if self._open else len(self._records)
        while self._at < wanted:
            record = self._records[self._at]
            if record.get("channel") == "mcp":
                self._voice.flush()
                self._ask(record)
            elif record.get("from") == "peer":
                said = self.names.spoken(record["line"])
                self._voice.say(said, at=record["at"], framing=record.get("framing", "line"))
            elif record.get("from") == "stderr":
                sys.stderr.write(self.names.spoken(record["line"]) + "\n")
                sys.stderr.flush()
            elif "file" in record:
                self._write(Path(self.names.spoken(record["file"])), self.names.spoken(record["text"]))
            self._at += 1
        self._voice.flush()

    def _ask(self, record: Object) -> None:
        if record.get("from") != "peer":
            return
        if "end" in record:
            self._bridge.leave(record["exchange"])
        elif self._bridge_port is None:
            complain("the CLI was told of a bridge, and now it is not")
        else:
            self._bridge.ask(record["exchange"], self._bridge_port, self.names.spoken(record["line"]))

    def _write(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="surrogateescape")

    def _hear(self, exchange: int | None, found: Json) -> None:
        first: Difference | None = None
        for number in [one for one in self._open if self._records[one].get("exchange") == exchange][:_AHEAD]:
            try:
                bound = self.names.match(json.loads(self._records[number]["line"]), found)
            except Difference as difference:
                first = first or difference
                continue
            self.names.live.update(bound)
            self._state.keep()
            self._open.remove(number)
            return
        if exchange in self._left:
            return  # the peer did not wait for it then either
        expected = f"line {self._open[0] + 2} of this process" if self._open else "the end"
        shown = json.dumps(found, ensure_ascii=False, separators=(",", ":"))[:300]
        complain(f"expected {expected}; {first or 'nothing more was recorded'}; got: {shown}")

    def end(self) -> None:
        """As the recorded process ended; one that was killed has no record of its end."""
        last = self._records[-1]
        if "exit" not in last:
            os.kill(os.getpid(), signal.SIGKILL)


def check_start(replay: Replay, records: list[Object], arguments: list[str]) -> None:
    """The command line, and the file in it that tells of a bridge."""
    recorded: Json = records[0]["start"]
    told = next((record["config"] for record in records[:2] if "config" in record), None)
    try:
        replay.names.live.update(replay.names.match(recorded, arguments, "argv"))
        if told is not None:
            config = Path(arguments[arguments.index("--mcp-config") + 1]).read_text(encoding="utf-8")
            replay.names.live.update(replay.names.match(json.loads(told), json.loads(config), "mcp-config"))
            replay.learn_bridge(config)
    except Difference as difference:
        complain(str(difference))


def main() -> None:
    recording, state_path, sizes, *arguments = sys.argv[1:]
    if "--version" in arguments:
        print(json.loads(Path(recording).read_text(encoding="utf-8").partition("\n")[0])["version"])
        return
    state = State(Path(state_path))
    directory = str(Path(state_path).parent)
    state.live |= {"<directory>": directory, "<directory-name>": re.sub(r"[^A-Za-z0-9]", "-", directory)}
    _, records = records_of_run(recording, state)
    replay = Replay(records, state, Voice([int(size) for size in sizes.split(",") if size]))
    check_start(replay, records, arguments)
    state.keep()
    replay.run()


if __name__ == "__main__":
    main()
