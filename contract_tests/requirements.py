"""The manifest: every behaviour we promise, one sentence each, and the mark that ties a test to it.

A test that proves a behaviour says so with `@requirement("turn:cancel:one-result-per-call")`. `test_requirements.py`
checks both directions: every id carried by a test is listed here, and every id listed here is carried by a test,
except known gaps, which state what is missing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Requirement:
    """One behaviour.

    `source` says where it comes from: an id from the field ("R-B1"), a section of the contract, a link to a
    specification, or "ours". `known_gap` says what does not hold yet, in words a user understands.
    """

    id: str
    sentence: str
    source: str
    known_gap: str | None = None


def _by_id(requirements: Iterable[Requirement]) -> dict[str, Requirement]:
    found: dict[str, Requirement] = {}
    for entry in requirements:
        if entry.id in found:
            raise ValueError(f"the requirement '{entry.id}' is listed twice: keep one of them")
        found[entry.id] = entry
    return found


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Mark a test as proof of these requirements.

    Raises:
        LookupError: an id is not in the manifest.
    """
    for one in ids:
        if one not in REQUIREMENTS:
            raise LookupError(f"no requirement '{one}': add it to contract_tests/requirements.py")
    return pytest.mark.requirement(*ids)


REQUIREMENTS: dict[str, Requirement] = _by_id(
    (
        # --- packaging and layout -----------------------------------------------------------------------------------
        Requirement(
            "packaging:wheel:three-packages",
            "The wheel holds harness, connectors and bridge_mcp with their data files, and no tests or fixtures.",
            "ours",
        ),
        Requirement(
            "packaging:wheel:runs-alone",
            "The wheel alone in an empty environment gives the command and all three packages; the demo then exits 3 "
            "and names the line that installs the extra.",
            "ours",
        ),
        Requirement(
            "packaging:wheel:demo-with-extra",
            "With the extra 'claude' and nothing else the demo passes.",
            "ours",
        ),
        Requirement(
            "packaging:no-registry-host",
            "No committed file names a package registry: whoever installs chooses where from.",
            "ours",
        ),
        Requirement(
            "layout:public-names-pinned",
            "A public name appears or goes only together with the list that pins it.",
            "ours",
        ),
        Requirement("layout:typed", "Every package tells type checkers that it is typed.", "ours"),
        Requirement(
            "layout:import-rules-cover-every-room",
            "A room of the house that exists is named in the import rules that apply to it.",
            "ours",
        ),
        Requirement("import:cost:harness", "Importing harness loads no pydantic.", "ours"),
        Requirement(
            "import:cost:help",
            "`harness --help` loads neither rich nor pydantic nor a vendor's SDK.",
            "ours",
        ),
        # --- scripted model -----------------------------------------------------------------------------------------
        Requirement(
            "scripted-model:script:precise-errors",
            "A script that cannot be used is refused in one line that names the file, the entry and the member.",
            "ours",
        ),
        Requirement(
            "scripted-model:messages:stream-and-whole",
            "An entry is answered as the Messages API would, event by event or in one piece.",
            "https://docs.anthropic.com/en/api/messages-streaming",
        ),
        Requirement(
            "scripted-model:names:peer-prefix",
            "A script names tools as the caller does; the peer's prefixed name is found in the request.",
            "ours",
        ),
        Requirement(
            "scripted-model:ids:unique-per-run",
            "Call and message ids never repeat, within a run or across runs, unless the script gives them.",
            "ours",
        ),
        Requirement(
            "scripted-model:results:quoted",
            "An answer can quote the result that the model really received, and nothing else in its place.",
            "ours",
        ),
        Requirement("scripted-model:numbers:exact", "Arguments given as text arrive letter by letter.", "ours"),
        Requirement(
            "scripted-model:end:says-so", "A model call past the end of the script gets an error that says so.", "ours"
        ),
        Requirement(
            "scripted-model:side-requests:take-no-entry",
            "Probes, token counts and unknown paths are answered and take no entry of the script.",
            "ours",
        ),
        Requirement(
            "scripted-model:failures:error-drop-hang",
            "An entry can be an HTTP error, a stream cut in the middle, or one that lasts until the client leaves.",
            "ours",
        ),
        Requirement(
            "scripted-model:log:every-request",
            "The log has each received request as one line before it is answered, without credentials.",
            "ours",
        ),
        Requirement(
            "scripted-model:command:lifecycle",
            "The command prints its address and ends with 0 on a signal, with 2 and one line on a bad script.",
            "ours",
        ),
        Requirement(
            "scripted-model:claude-cli:accepts",
            "The real Claude Code CLI takes the scripted model for the API.",
            "ours",
        ),
        # --- processes ----------------------------------------------------------------------------------------------
        Requirement("process:lines:any-chunking", "Any chunking of a byte stream gives the same lines.", "R-B5"),
        Requirement(
            "process:lines:byte-exact",
            "Only 0x0A ends a line; what is between passes byte by byte, whatever separators and characters it holds.",
            "R-J1, R-J2, R-J3",
        ),
        Requirement(
            "process:lines:limit",
            "A line of 50 MiB passes in linear time; the limit is 64 MiB, can be set, and is a clear error.",
            "R-B1, R-B4",
        ),
        Requirement("process:lines:foreign-lines-pass", "A line that is no JSON is handed on like any other.", "R-B9"),
        Requirement(
            "process:stderr:drained", "10 MB of stderr before an answer block nobody; their end is kept.", "R-B10"
        ),
        Requirement("process:output:flood", "A peer that floods its output leaves others their turn.", "ours"),
        Requirement(
            "process:environment:allow-list",
            "A CLI sees what is on the allow list and what its connector names, nothing of another agent's session.",
            "R-J7",
        ),
        Requirement(
            "process:environment:no-proxy-for-loopback",
            "No proxy stands between a CLI and 127.0.0.1, in either spelling.",
            "ours",
        ),
        Requirement(
            "process:start:clear-errors",
            "A program that cannot be started is named in one line with the remedy, by its real cause.",
            "R-J4, R-J5",
        ),
        Requirement(
            "process:lost:says-why",
            "A peer that goes by itself is lost with its exit code, last words, and how much of a line it left.",
            "R-B3",
        ),
        Requirement(
            "process:lost:grandchild-holds-pipes",
            "The end of a peer is seen at once though a grandchild holds its pipes open.",
            "R-M1",
        ),
        Requirement(
            "process:end:whole-tree",
            "Everything a peer started ends with it: other sessions, empty environments and lost parents included.",
            "R-C2",
        ),
        Requirement("process:end:wrapper-chain", "A wrapper, the CLI behind it and the CLI's server all go.", "R-C3"),
        Requirement("process:end:bounded", "SIGTERM, grace, SIGKILL: awaited to the end, and bounded.", "R-C4"),
        Requirement(
            "process:end:sigterm-before-eof",
            "A peer's input stays open until it is gone, also when its owner is killed: it hears SIGTERM first.",
            "R-A7",
        ),
        Requirement(
            "process:end:cancelled-anywhere",
            "Cancelled during start, turn or end, even twice, a peer leaves no process, task or descriptor.",
            "R-C5",
        ),
        Requirement(
            "process:end:nothing-left", "Opened and closed again and again, peers leave nothing behind.", "R-C5"
        ),
        Requirement(
            "process:reaper:kill-9", "`kill -9` of the owner leaves no process after five seconds.", "R-C1, R-C7"
        ),
        Requirement(
            "process:reaper:shared",
            "The peers of an event loop share one reaper; it leaves with the last and is replaced when killed.",
            "ours",
        ),
        Requirement("process:reaper:idle", "The reaper sleeps until something happens.", "R-C7"),
        Requirement(
            "process:reaper:stale",
            "Recorded marks are enough to end what a dead process left; a number alone ends nobody.",
            "R-C6",
        ),
        Requirement("process:reaper:light", "The reaper imports a small part of the standard library.", "R-E2"),
        # --- bridge: the MCP server core ----------------------------------------------------------------------------
        Requirement(
            "bridge:mcp:handshake",
            "A peer is told our version, capabilities and tools; a newer era is declined so that it falls back.",
            "design 5",
        ),
        Requirement(
            "bridge:mcp:errors",
            "What is malformed, unknown or impossible is answered with the JSON-RPC error that says so, never raised.",
            "https://www.jsonrpc.org/specification#error_object",
        ),
        Requirement(
            "bridge:mcp:parallel-calls",
            "Several calls are open at once and answered in any order, each exactly once.",
            "design 5",
        ),
        Requirement(
            "bridge:mcp:delivered-twice",
            "A call delivered twice is one request; the second delivery gets the first one's answer.",
            "design 5",
        ),
        Requirement(
            "bridge:mcp:withdrawn",
            "A call that its peer cancelled or left is withdrawn and gets no answer.",
            "design 5",
        ),
        Requirement(
            "bridge:mcp:progress",
            "Signs of life go to the requests that asked for them, with a growing count.",
            "https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress",
        ),
        Requirement(
            "bridge:mapping:large-results",
            "Every injected tool declares that its results may be large, so that the peer does not cut them.",
            "ours",
        ),
        Requirement(
            "R-G3",
            "A tool's error and a protocol's error stay apart from end to end.",
            "R-G3",
        ),
        Requirement(
            "R-I1",
            "Tool names fit together with the peer's prefix and lead back to the caller's tool.",
            "R-I1",
        ),
        Requirement(
            "R-I2",
            "A schema that a peer would drop is brought into shape by a named rewrite or refused with the tool's name.",
            "R-I2",
        ),
        Requirement(
            "R-I3",
            "One tool that a peer cannot take never removes the others; output schemas stay with us.",
            "R-I3",
        ),
        Requirement(
            "R-I4",
            "Schemas reach the peer as they were given, unless a named rewrite applies.",
            "R-I4",
        ),
        Requirement(
            "R-I5",
            "A tool without arguments works.",
            "R-I5",
        ),
        Requirement(
            "R-L6",
            "Structured content never replaces or repeats what a result says.",
            "R-L6",
        ),
        Requirement(
            "R-M7",
            "Read-only hints reach the peer, which then calls such tools in parallel.",
            "R-M7",
        ),
        # --- the turn -----------------------------------------------------------------------------------------------
        Requirement(
            "turn:stream:numbered-and-complete",
            "Numbers start at 1 and grow by 1; polls with any numbers, repeated or lost, give exactly the same stream, "
            "and what a poll says at N follows from items 1..N.",
            "contract 3",
        ),
        Requirement(
            "turn:requests:one-outcome-each",
            "Every opened request gets exactly one outcome and at most one delivery; nothing is pending in a finished "
            "turn.",
            "contract 4",
        ),
        Requirement(
            "turn:answers:second-answer",
            "The same answer again is a no-op, another one is already_answered, one that crossed a withdrawal is "
            "dropped; none disturbs the turn.",
            "contract 4",
        ),
        Requirement(
            "turn:status:awaiting-host-iff-open", "A turn awaits the host if and only if a request is open.", "contract 3"
        ),
        Requirement("turn:end:never-changes", "A finished turn never changes; late events are fenced off.", "contract 5"),
        Requirement(
            "turn:cancel:order",
            "A cancel resolves every open request and asks for one interrupt, and nothing is delivered after it.",
            "contract 5",
        ),
        Requirement(
            "turn:table:every-cell-reached", "The tests reach every transition that the table of a turn has.", "ours"
        ),
        Requirement(
            "turn:search:finds-planted-faults", "The search over interleavings finds each of six planted faults.", "ours"
        ),
        Requirement(
            "R-G1",
            "Every call id has exactly one result on every path out of a turn, under any interleaving.",
            "R-G1",
        ),
    )
)
