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
        # --- policy -------------------------------------------------------------------------------------------------
        Requirement(
            "policy:order",
            "Hooks, deny rules, ask rules, mode, allow rules, then somebody is asked: the first that speaks decides.",
            "design 9",
        ),
        Requirement(
            "policy:hooks",
            "A hook denies, asks or changes arguments; its allow never beats a deny or ask rule, its failure denies.",
            "design 9",
        ),
        Requirement("policy:commands", "An allow rule never matches a part of a compound command.", "design 9"),
        Requirement("policy:commands:deny", "A deny rule finds its command wherever it may be run in a line.", "ours"),
        Requirement("policy:paths", "Paths match as they are written and also where their links lead.", "ours"),
        Requirement("policy:urls", "URLs match by host, and only where every client would go to that host.", "ours"),
        Requirement("policy:text-form", "The short form of a rule is read and written without a change.", "contract 2"),
        Requirement(
            "policy:unreadable",
            "Arguments that two readers could read differently are never allowed.",
            "ours",
        ),
        Requirement("policy:files", "What is wrong in a policy names file, key and what was expected.", "contract 7"),
        Requirement("policy:layers", "One layer decides, the deny rules of all stay in force.", "ours"),
        Requirement("policy:house", "A server's own policy answers before a host is asked, and says so.", "contract 3"),
        Requirement("orchestrator:policy:decides", "The policy decides before anybody is asked.", "design 9"),
        Requirement("orchestrator:policy:person", "A person sees what would run and may change it.", "ours"),
        Requirement("orchestrator:policy:always", "Always is for this conversation, and never beats a denial.", "ours"),
        Requirement("orchestrator:policy:nobody", "What nobody can allow is not run, and says why.", "design 9"),
        Requirement("orchestrator:policy:timeouts", "Time for a person is apart from time for a tool.", "contract 2"),
        Requirement(
            "orchestrator:results:untrusted",
            "Results are data: bounded, marked where they look like orders, never part of a system prompt.",
            "design 9",
        ),
        Requirement("cli:policy:layers", "--policy, else the project's, else the user's policy decides.", "ours"),
        Requirement("cli:policy:trust", "A project's allow rules count once trusted, until they change.", "ours"),
        Requirement("cli:policy:test", "`harness policy test` explains a decision.", "ours"),
        Requirement(
            "cli:config", "One configuration file; what is wrong in it names file, key, expected.", "contract 7"
        ),
        Requirement(
            "cli:requests", "What waits at a server is listed and answered from another process.", "contract 1"
        ),
        Requirement(
            "policy:delegation:house", "What a caller delegates never passes by the server's policy.", "contract 1"
        ),
        Requirement("policy:probes", "A fixed table of bypasses is ruled as expected.", "ours"),
        Requirement(
            "policy:probes:verify", "`verify --policy-probes` tries the table on a CLI and names what got past.", "ours"
        ),
        Requirement("policy:probes:report", "docs/policy-probes.md has every probe, and none got past.", "ours"),
        Requirement(
            "policy:delegation:never-wider",
            "A delegated policy allows nothing that the host's policy would not allow.",
            "contract 1",
        ),
        # --- conformance: what harness/testing/scenarios tries on every connector -----------------------------------
        Requirement("conformance:text", "An answer streams, is numbered without a gap, and ends once.", "contract 3"),
        Requirement("conformance:call", "A call and its result pass between model and host as they are.", "contract 4"),
        Requirement(
            "conformance:call:parallel", "Calls of one round wait together as far as the peer can.", "contract 4"
        ),
        Requirement("conformance:call:slow", "A call stays open as long as the host needs.", "R-A5"),
        Requirement("conformance:stop-reasons", "Every end of a turn has its neutral stop reason.", "contract 3"),
        Requirement("conformance:approval", "What a peer asks before it acts is decided by the host.", "R-D10, R-D12"),
        Requirement(
            "conformance:delegation", "What is delegated the peer does itself, the rest arrives.", "contract 1"
        ),
        Requirement("conformance:provider-errors", "A provider's failure is told by its reason.", "contract 7"),
        Requirement("conformance:history", "A history given at the start is read by the model.", "contract 2"),
        Requirement("conformance:exact", "Values that are easily spoilt pass both ways unchanged.", "contract 4"),
        Requirement("conformance:turn-options", "An option of one turn holds for this turn only.", "contract 2"),
        Requirement("conformance:kit", "A foreign connector is tried with one fixture.", "R-M9"),
        Requirement("conformance:matrix", "The published matrix says what the scenarios find.", "R-M9"),
        Requirement("R-B3", "A lost peer fails its turn as lost, and the next message goes on.", "R-B3"),
        Requirement("R-F1", "A conversation goes on in the peer's own session after a restart.", "R-F1"),
        # --- limits -------------------------------------------------------------------------------------------------
        Requirement(
            "limits:budget", "A turn without budget ends with 'budget', whoever keeps the limit.", "contract 2"
        ),
        Requirement("limits:rounds", "A turn over its rounds ends with 'max_turns', whoever keeps it.", "contract 2"),
        Requirement("limits:near", "Four fifths of a limit are told, once.", "contract 2"),
        Requirement("limits:denials", "A call that is refused or fails again and again ends the turn.", "R-D2, R-D10"),
        Requirement(
            "R-D2", "A call that is refused again and again, unchanged, ends the turn with 'loop_guard'.", "R-D2"
        ),
        Requirement("R-D10", "One policy gives one answer, whatever the connector and the kind of request.", "R-D10"),
        Requirement("limits:prices", "The price table stands in where the provider tells no cost.", "contract 2"),
        Requirement("conformance:replay", "A recording gives the trace it was made with, with no CLI here.", "R-M9"),
        Requirement("conformance:replay:strict", "A replay notices every field of ours that changed.", "R-M9"),
        Requirement("conformance:record:same", "Two recordings of one scenario differ where the peer does.", "R-M9"),
        Requirement("conformance:drift", "What a peer does otherwise than recorded is told in words.", "R-M9"),
        Requirement("verify:command", "`verify` plays scenarios live or replayed and tells each verdict.", "R-M9"),
        Requirement("conformance:mutants", "What a connector spoils in one place is noticed by the suite.", "R-M9"),
        Requirement("canary:falls", "A peer that does not ask, block or stay denied fells its canary.", "R-D7"),
        Requirement("canary:verdict", "A canary's verdict holds for one binary, route and system.", "R-D7"),
        Requirement("canary:command", "`verify --canary` tries the installed program and keeps the verdict.", "R-D7"),
        Requirement(
            "canary:serve", "After a canary that fell only conversations without internal tools are served.", "R-D7"
        ),
        Requirement("doctor:finds", "`doctor` tells version, path and login of what is installed.", "ours"),
        Requirement("doctor:remedy", "`doctor` tells what to type for what is missing, with exit code 3.", "ours"),
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
        # --- the contract's values ----------------------------------------------------------------------------------
        Requirement(
            "contract:schema:checked-in", "The JSON Schema that the wheel holds is that of the models.", "contract"
        ),
        Requirement(
            "contract:schema:no-dictionaries",
            "No value has a dictionary: JSON travels as text, pairs as a list of name and value.",
            "contract",
        ),
        Requirement(
            "contract:schema:unions", "Variants of a union never reuse a field name with another type.", "contract"
        ),
        Requirement(
            "contract:schema:describes-the-wire",
            "What is written fits the schema, and what is broken does not.",
            "contract",
        ),
        Requirement("contract:values:round-trip", "Every value reads back as itself what it wrote.", "contract"),
        Requirement(
            "contract:writing:strict",
            "Nulls are omitted, everything else is written, discriminators always.",
            "contract",
        ),
        Requirement(
            "contract:reading:generous",
            "Unknown fields are ignored, unknown items and blocks keep their raw fields, an unknown enum member stays "
            "the string it is.",
            "contract",
        ),
        Requirement(
            "contract:json:passes-through", "Texts and JSON texts pass through letter by letter.", "contract 4"
        ),
        Requirement(
            "contract:errors:one-code", "Every error has one code, the same in Python and on a wire.", "contract 7"
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
            "turn:status:awaiting-host-iff-open",
            "A turn awaits the host if and only if a request is open.",
            "contract 3",
        ),
        Requirement(
            "turn:end:never-changes", "A finished turn never changes; late events are fenced off.", "contract 5"
        ),
        Requirement(
            "turn:cancel:order",
            "A cancel resolves every open request and asks for one interrupt, and nothing is delivered after it.",
            "contract 5",
        ),
        Requirement(
            "turn:table:every-cell-reached", "The tests reach every transition that the table of a turn has.", "ours"
        ),
        Requirement(
            "turn:deltas:merged-per-read",
            "Adjacent deltas of one item that arrive in one read are one item of the stream, others never.",
            "contract 3",
        ),
        Requirement(
            "turn:requests:order-of-the-model", "Open requests are listed in the order the model asked.", "contract 4"
        ),
        Requirement(
            "turn:expiry:one-error-result",
            "An expired request gets exactly one synthetic answer: "
            "an error result, a denial or a decline, never a pass.",
            "contract 2",
        ),
        Requirement(
            "turn:giving-up:interrupts-once",
            "When we give up on a peer the turn ends at once and the peer is interrupted exactly once.",
            "contract 5",
        ),
        Requirement(
            "turn:window:only-deltas-leave",
            "Of a long turn only the oldest deltas leave the memory, and `first_sequence_no` says from where on the "
            "stream is complete.",
            "contract 3",
        ),
        Requirement(
            "turn:size:too-large-ends-it",
            "A turn over `max_turn_bytes` ends failed with turn_too_large, wherever the limit strikes.",
            "ours",
        ),
        Requirement(
            "turn:answers:options",
            "An approval is answered by an option that was offered, named by its id or by a kind that one option has.",
            "contract 4",
        ),
        Requirement(
            "turn:answers:questions", "A question takes the answers it offers and may be declined.", "contract 4"
        ),
        Requirement(
            "R-G2",
            "A request that a peer raises again while it is open is the same request, shown again and not made again.",
            "R-G2",
        ),
        Requirement("R-G4", "Two identical parallel calls are two requests with a result each.", "R-G4"),
        Requirement(
            "R-A6",
            "On its deadline a request leaves the pending list and exactly one error result goes to the model.",
            "R-A6",
        ),
        Requirement("R-H1", "A cancel closes every open request even if the peer says nothing.", "R-H1"),
        Requirement(
            "R-H3",
            "After a cancel the turn is cancelled, not failed, and the next message works in the same conversation.",
            "R-H3",
        ),
        Requirement(
            "turn:search:finds-planted-faults",
            "The search over interleavings finds each of six planted faults.",
            "ours",
        ),
        Requirement(
            "R-G1",
            "Every call id has exactly one result on every path out of a turn, under any interleaving.",
            "R-G1",
        ),
        # --- the journal --------------------------------------------------------------------------------------------
        Requirement(
            "store:client-key",
            "One owner has one conversation per client key, whichever process begins it.",
            "contract 1",
        ),
        Requirement("store:owners", "What another owner has is not found.", "contract 1"),
        Requirement(
            "store:fence",
            "Only the last who claimed a conversation writes to it; one that a live process holds is refused and the "
            "process named.",
            "design 6",
        ),
        Requirement("store:append:all-or-nothing", "An append is kept as a whole or not at all.", "design 6"),
        Requirement("store:round-trip", "Every kind of entry comes back value for value.", "design 6"),
        Requirement("store:blobs", "A large string stands in the journal once and goes with its last user.", "ours"),
        Requirement("store:lists", "Lists, open requests, items and sizes are answered by the store.", "ours"),
        Requirement(
            "store:abandoned", "What a dead process held, or gave back in the middle of a turn, is found.", "design 6"
        ),
        Requirement("store:delete", "A deleted conversation is gone and its client key is free.", "contract 1"),
        Requirement("store:loop", "A large append does not hold up the loop.", "design 6"),
        Requirement("store:not-open", "A journal that is not open says so.", "ours"),
        Requirement("store:private", "Only the user can read the journal.", "design 10"),
        Requirement(
            "store:schema", "A journal of a newer version is refused and left alone; others are brought up.", "ours"
        ),
        Requirement("store:broken", "A file that cannot be a journal is refused by name.", "ours"),
        Requirement("store:full", "A full disk is a clear error, and what was there before stays whole.", "design 6"),
        Requirement("store:locked", "A locked journal is waited for, and an error when it stays locked.", "design 6"),
        Requirement("store:several-processes", "Several processes write to one journal.", "design 6"),
        Requirement(
            "journal:failure:ends-turn",
            "A journal that cannot be written ends the turn, interrupts the peer and loses no accepted answer; when "
            "it can, the conversation goes on.",
            "design 6",
        ),
        Requirement(
            "journal:restart:exact",
            "After a crash open requests stay open under their ids, the turn goes on when they are answered, and what "
            "the model was saying is said again; leaving the harness keeps such a turn, too.",
            "contract 6",
        ),
        Requirement("R-F7", "All three kinds of request survive a restart.", "R-F7"),
        Requirement("journal:restart:polls", "A poll never goes backwards, also over a restart.", "contract 3"),
        Requirement(
            "journal:restart:overdue",
            "A request whose deadline passed while nobody was there is closed as a denial or error before anything is "
            "shown.",
            "contract 2",
        ),
        Requirement(
            "journal:restart:client-key",
            "A caller that was killed finds its conversation and its turn by their client keys.",
            "contract 1",
        ),
        Requirement(
            "journal:restart:run-to-completion", "`run_to_completion` picks up a turn that runs already.", "design 9"
        ),
        Requirement("journal:restart:ids", "A request id is given once, also over restarts.", "contract 4"),
        Requirement("journal:restart:usage", "Figures and structured output are those of before.", "contract 3"),
        Requirement("journal:restart:old-turns", "Every turn of a conversation can be read, however old.", "ours"),
        Requirement(
            "journal:restart:continued",
            "After a crash the turn of a dead peer is lost, what was open is told with what is known, and the next "
            "message goes on in the peer's own session.",
            "contract 6",
        ),
        Requirement(
            "journal:answers:not-delivered",
            "An answer that was accepted and did not reach the peer, or perhaps not, is in the detail of `peer_lost`.",
            "contract 6",
        ),
        Requirement(
            "journal:restart:on-peer-lost",
            "With `on_peer_lost: continue` the harness sends the message that goes on, answers quoted as data, once.",
            "contract 6",
        ),
        Requirement(
            "journal:restart:none",
            "A peer that cannot resume starts afresh, and the turn says once that the history is lost.",
            "contract 6",
        ),
        Requirement("R-F3", "A peer that is lost again and again fails each turn; nothing goes round.", "R-F3"),
        Requirement("R-F5", "What was shown before a restart is never shown again as new.", "R-F5"),
        Requirement("journal:waiters:fail-at-once", "A process that exits fails all who wait for it at once.", "ours"),
        Requirement(
            "journal:several-processes",
            "Several processes share a journal: what a live one has open is not touched and names it; what is idle or "
            "left by a dead one goes to whoever asks.",
            "design 6",
        ),
        Requirement(
            "R-C8",
            "How many peers run is limited: the longest idle one makes room and resumes with its next message; what "
            "each takes is told.",
            "R-C8",
        ),
        Requirement(
            "journal:idle", "A message that comes while its conversation is put to rest goes on with it.", "ours"
        ),
        Requirement(
            "journal:crash-points",
            "A process killed at any of its writes breaks no promise: no accepted answer is lost, no call is delivered "
            "twice, no request id is used again, no poll goes backwards.",
            "design 6",
        ),
        Requirement(
            "journal:crash-points:finds-planted-faults",
            "A build that promises before it writes is found out by the same search.",
            "ours",
        ),
        Requirement(
            "R-C6",
            "What the peers of a crashed server left running is ended at the next start, by recorded mark, pid and "
            "start time; what a live one runs is left alone.",
            "R-C6",
        ),
        Requirement(
            "cli:sessions:list", "`sessions list` tells what the journal has, and `[]` when it is empty.", "ours"
        ),
        Requirement(
            "cli:sessions:private",
            "The journal is the user's alone; a file, the configuration or 'memory' may be named instead.",
            "ours",
        ),
        Requirement(
            "cli:sessions:show",
            "`sessions show` and `export` give a transcript to read, or the items as JSONL.",
            "ours",
        ),
        Requirement("cli:sessions:delete", "`sessions delete` says what it forgot, or why not.", "ours"),
        Requirement(
            "cli:sessions:prune", "`sessions prune` forgets by age and size; `--dry-run` only says what.", "ours"
        ),
        Requirement("cli:sessions:in-use", "What a live process has open is refused, and the process named.", "ours"),
        Requirement("cli:run:continue", "`run --continue` goes on with the latest of this directory.", "ours"),
        Requirement(
            "cli:run:resume",
            "`run --resume` goes on with a conversation, and without a message with the turn that has not ended.",
            "ours",
        ),
        Requirement("cli:run:fork", "`run --fork` goes on in a new conversation, where the peer can.", "ours"),
        Requirement(
            "journal:writer:order",
            "What is noted is shown, accepted and delivered after its commit, in order.",
            "design 6",
        ),
        Requirement(
            "journal:writer:failure",
            "Whoever waits for a batch that failed is told so, and nothing of it is lost when the medium is back.",
            "design 6",
        ),
        Requirement(
            "journal:writer:message-is-durable-first",
            "The peer hears of a message when its turn is durable.",
            "ours",
        ),
        Requirement(
            "journal:python-store", "In Python conversations are kept by a `store`, and not without one.", "design 6"
        ),
        # --- every ConversationalLLM, in process and over HTTP ------------------------------------------------------
        Requirement(
            "llm:turn:tool-calls",
            "A turn asks for tools by their ids and arguments, in the model's order, and goes on with the results.",
            "contract 4",
        ),
        Requirement(
            "llm:turn:one-at-a-time",
            "A second message while a turn runs is refused, never queued; the same one again is the same turn.",
            "R-M6",
        ),
        Requirement(
            "llm:poll:same-stream",
            "However polls are cut, joined they are the same stream, and no poll brings more than was asked for.",
            "contract 3",
        ),
        Requirement(
            "llm:poll:waits",
            "A poll waits until something is newer or its time is over; a finished turn keeps nobody waiting.",
            "contract 1",
        ),
        Requirement(
            "llm:answers:judged-alone",
            "Valid answers are applied beside invalid ones, and the error lists exactly those that were rejected.",
            "contract 4",
        ),
        Requirement(
            "llm:answers:never-open-again",
            "Once an answer was accepted, no later poll of that caller shows its request open.",
            "contract 4",
        ),
        Requirement(
            "llm:cancel",
            "A cancel resolves what is open, interrupts once, may be repeated, and leaves the conversation usable.",
            "contract 5",
        ),
        Requirement("llm:client-key", "A client key makes a repeated call the same one.", "contract 1"),
        Requirement("llm:errors:same-classes", "An error has the same class wherever it comes from.", "contract 7"),
        Requirement("llm:directory", "The directory tells conversations, what waits, and exports.", "contract 1"),
        Requirement("llm:end", "The end of a conversation cancels its turn and may be repeated.", "contract 1"),
        Requirement("llm:capabilities", "Capabilities are true for the options given.", "contract 1"),
        Requirement(
            "R-J1",
            "U+2028, U+2029, U+0085, VT, FF and CR inside strings never end a line, over stdio and HTTP.",
            "R-J1",
        ),
        Requirement(
            "R-J3",
            "Text is UTF-8 both ways, never the locale's; an unpaired surrogate breaks nothing.",
            "R-J3",
        ),
        Requirement(
            "R-B4", "Nothing in the chain limits sizes below what is configured: lines, bodies, results.", "R-B4"
        ),
        # --- native HTTP --------------------------------------------------------------------------------------------
        Requirement(
            "http:routes", "Each operation has its route, which gives and takes the contract's values.", "contract 1"
        ),
        Requirement(
            "http:problems",
            "Every error is problem+json with our code; one about a body names the field and never its value.",
            "contract 7",
        ),
        Requirement("http:openapi", "The served description has every route with its concrete schemas.", "ours"),
        Requirement("http:owners", "A conversation of another owner is unknown.", "contract 1"),
        Requirement("http:rights", "A remote caller names no programs or files, and no other directory.", "design 10"),
        Requirement("http:departure", "A client that goes away frees its waiter.", "ours"),
        Requirement("http:shutdown", "Shutdown answers what waits, ends streams and refuses new work.", "ours"),
        Requirement("http:text", "Odd text in a body is read as it is; surrogates become U+FFFD in text.", "R-J3"),
        Requirement(
            "R-M8",
            "A stream resumes exactly behind the last event, has heartbeats, and says when earlier items are gone.",
            "R-M8",
        ),
        Requirement("R-K2", "A server's token is in no output, log line, error or child's environment.", "R-K2"),
        Requirement(
            "R-K3", "Host and Origin are checked before the token, which is compared in constant time.", "R-K3"
        ),
        Requirement("R-K4", "The token is printed only on demand, and kept where only its user can read it.", "R-K4"),
        Requirement("remote:shared-stream", "All pollers of a turn share one stream.", "design 8"),
        Requirement("remote:resumes", "A stream that breaks off is resumed without a gap or a repetition.", "R-M8"),
        Requirement("remote:server-gone", "A server that is gone is an error at once, never a hang.", "ours"),
        Requirement("remote:import-light", "The remote client loads neither Starlette nor uvicorn.", "ours"),
        Requirement(
            "serve:command",
            "The command prints its address, ends with 0 on a signal and at once on a second one.",
            "ours",
        ),
        # --- orchestrator -------------------------------------------------------------------------------------------
        Requirement(
            "orchestrator:functions:schema",
            "A function's signature, annotations and docstring become the tool's schema and descriptions.",
            "ours",
        ),
        Requirement(
            "orchestrator:functions:hints",
            "`@tool` names a tool and says what it does; a function without it is not read-only.",
            "ours",
        ),
        Requirement(
            "orchestrator:functions:results",
            "A tool's result is text as it is, content blocks, or compact JSON; what JSON cannot carry says so.",
            "ours",
        ),
        Requirement(
            "orchestrator:functions:errors-are-data",
            "An exception of a tool is an error result with type and message, never a stack trace.",
            "ours",
        ),
        Requirement(
            "orchestrator:functions:threads",
            "A sync function runs in a thread, an async one as it is.",
            "ours",
        ),
        Requirement(
            "orchestrator:functions:never-returns",
            "A sync function that never returns holds up neither its turn nor the end of the process.",
            "ours",
        ),
        Requirement(
            "orchestrator:functions:bad-signature",
            "A function that cannot be described is named in one line, with the parameter.",
            "ours",
        ),
        Requirement(
            "orchestrator:tool-files:public-functions",
            "The public functions that a file defines are its tools; a colon names one.",
            "ours",
        ),
        Requirement(
            "orchestrator:tool-files:isolated",
            "A tools file is imported under a name of its own and never shadows an installed package.",
            "ours",
        ),
        Requirement(
            "orchestrator:tool-files:one-line-errors",
            "Whatever is wrong with a tools file is one line that names it and, where known, its line.",
            "ours",
        ),
        Requirement(
            "orchestrator:registry:sorted-unique",
            "The tools of all sources are one list, sorted by name, without a name used twice.",
            "ours",
        ),
        Requirement(
            "orchestrator:registry:unknown-tool",
            "A call of an unknown tool is an error result that names the known ones.",
            "ours",
        ),
        Requirement(
            "cli:run:advisor",
            "The advisor that the configuration names is a tool of a run; without one there is none.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:services:headers",
            "Headers for a service go to no other host because a document or a redirect says so.",
            "ours",
        ),
        Requirement(
            "orchestrator:docs",
            "What docs/tools.md shows in Python runs.",
            "ours",
        ),
        Requirement(
            "orchestrator:sources:live",
            "The real CLI uses a function, a delegated and a routed MCP server, a UJMW service, and an approval "
            "from another process in one turn.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:agents:answer",
            "Any ConversationalLLM is a tool of another: own instructions and tools, a conversation per call, "
            "failures are error results.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:agents:policy",
            "Inside of an agent the caller's policy decides and the caller's people are asked; without a caller "
            "nobody gives leave.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:agents:limits",
            "Calls, depth and concurrency of agents are bounded; what is left of the caller's budget applies "
            "inside and is used up there.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:agents:advisor",
            "The advisor reads the conversation so far, size-limited, as data, and answers with a review.",
            "issue 8",
        ),
        Requirement(
            "cli:tools",
            "`harness tools` lists and calls the tools of any source without a model.",
            "issue 8",
        ),
        Requirement(
            "cli:run:sources",
            "`harness run` uses MCP servers and services, and says with -v who runs each and why.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:sources:mixed",
            "Routed and delegated servers are used side by side; each decision is told before the first turn, "
            "and what ran here ends with the conversation.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:routing:decision",
            "Whether a source is routed or delegated follows from capability, reach, secrets and the caller's "
            "wish, with the reason.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:routing:provider",
            "A public MCP server may be handed to a provider's own MCP client.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:routing:reach",
            "Loopback, private and local addresses are told from public ones.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:routing:secrets",
            "Headers, and variables, options and URL parameters named like secrets, keep a source here unless "
            "marked shareable.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:routing:table",
            "The decision table of docs/delegation.md is that of the code.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:openapi:operations",
            "The operations of an OpenAPI document, selected by id or tag, are tools with schemas that stand alone.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:openapi:calls",
            "Arguments go where the document says, with the caller's headers and to nobody else; what goes wrong "
            "is an error result.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:openapi:mistakes",
            "A document that cannot be used is named, with the remedy.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:ujmw:operations",
            "The operations of a UJMW service, declared or from its document, are tools; a fault is the "
            "operation's own error.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:mcp:config",
            "The mcpServers JSON of other programs is read, with variables and our own keys; a mistake names "
            "file, server and key.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:mcp:tools",
            "Tools of an MCP server over stdio and HTTP: all pages, schemas as they are, progress, images, "
            "structured results, headers.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:mcp:cancel",
            "A call that nobody waits for is cancelled at the server.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:mcp:timeout",
            "A call that takes too long is an error result, and cancelled at the server.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:mcp:lost",
            "A server that is lost fails its calls with its last words, never runs them twice, and is reached "
            "anew by the next.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:mcp:tree",
            "When a source ends, its server and everything that started are gone.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:mcp:start",
            "A server that cannot be started or does not answer is named, with the reason.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:mcp:list-changed",
            "A list that changes in a conversation is kept, followed or ends the source, as wished.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:mcp:names",
            "Names become tool names; a prefix keeps two sources apart, a collision is a clear error.",
            "issue 8",
        ),
        Requirement(
            "orchestrator:functions:context",
            "A function that asks for its context gets call id, progress and the news that nobody waits; the "
            "model never sees it.",
            "ours",
        ),
        Requirement(
            "orchestrator:functions:structured",
            "What a function declares as an object is also structured content; images may stand beside words.",
            "ours",
        ),
        Requirement(
            "orchestrator:functions:object",
            "The public methods of an object are tools; nothing is computed by looking.",
            "ours",
        ),
        Requirement(
            "orchestrator:registry:around",
            "Hooks around calls see call and result in order and may replace either; the policy judges what "
            "would really run.",
            "ours",
        ),
        Requirement(
            "orchestrator:arguments:actionable",
            "Arguments that do not fit never reach the tool: the model is told what is wrong and what fits.",
            "ours",
        ),
        Requirement(
            "orchestrator:arguments:pass-through",
            "Arguments that fit reach the tool as the provider wrote them.",
            "ours",
        ),
        Requirement(
            "orchestrator:arguments:no-fetch",
            "A schema that refers to another document never causes a fetch.",
            "ours",
        ),
        Requirement(
            "orchestrator:approvals:modes",
            "Allow, deny, ask and wait answer an approval as their names say, and never with more.",
            "ours",
        ),
        Requirement(
            "orchestrator:questions:never-invented",
            "A question is answered by a person or by what was prepared, else declined with a reason.",
            "ours",
        ),
        Requirement(
            "orchestrator:completion:text",
            "The text of a turn is its final messages, else those without phase, else what was streamed.",
            "contract 3",
        ),
        Requirement(
            "orchestrator:completion:outcomes",
            "Each call is ok, failed, refused or unknown, with the reason where it was refused.",
            "contract 3",
        ),
        Requirement(
            "orchestrator:completion:exit-codes",
            "Exit codes follow the table of status and stop reason.",
            "contract 3",
        ),
        Requirement(
            "orchestrator:completion:nulls-omitted",
            "The JSON omits null members, cuts arguments at 300 characters, and has results only in full.",
            "contract 3",
        ),
        Requirement(
            "orchestrator:schemas:in-step",
            "The checked-in JSON Schemas of both outputs are those of the models, and real output fits.",
            "ours",
        ),
        Requirement(
            "orchestrator:run:one-result-per-call",
            "Each call gets at most one answer, and is resolved once, however turn, tool or caller end.",
            "ours",
        ),
        Requirement(
            "orchestrator:run:order",
            "Read-only calls run side by side; the others one after the other, as the model asked.",
            "ours",
        ),
        Requirement(
            "orchestrator:run:identical-calls",
            "Two identical calls of one round are two runs with two results.",
            "ours",
        ),
        Requirement(
            "orchestrator:run:given-up-at-once",
            "A tool whose request is withdrawn, expired or cancelled is cancelled at once.",
            "ours",
        ),
        Requirement(
            "orchestrator:run:caller-cancelled",
            "When the caller is cancelled or a call breaks, the turn is cancelled and nothing stays open.",
            "ours",
        ),
        Requirement(
            "orchestrator:run:rejected-answers",
            "An answer that cannot be passed on becomes an error result; one that comes too late is fine.",
            "ours",
        ),
        Requirement(
            "orchestrator:run:takes-up-a-turn",
            "A turn that runs already can be taken up: only what is open is answered.",
            "ours",
        ),
        Requirement(
            "orchestrator:results:fit",
            "A result that is too long is cut in the middle, visibly; an image that cannot pass becomes a note.",
            "ours",
        ),
        Requirement(
            "orchestrator:structured-output:native",
            "An output type is asked for in the strictest way the connector has.",
            "ours",
        ),
        Requirement(
            "orchestrator:structured-output:repair",
            "An answer that does not fit its type gets one round of repair.",
            "ours",
        ),
        Requirement(
            "orchestrator:conversation:stream",
            "A stream gives a turn's items as they come; leaving it early cancels the turn.",
            "ours",
        ),
        # --- claude connector ---------------------------------------------------------------------------------------
        Requirement(
            "claude:turn:text",
            "Text and thinking stream as they come; the answer is one final message with the same text.",
            "contract 3",
        ),
        Requirement(
            "claude:call:exact",
            "A call has the model's id, its place and its arguments letter by letter; the result reaches the model.",
            "contract 4",
        ),
        Requirement(
            "claude:call:one-by-one",
            "Calls of tools that are not read-only are raised one after the other.",
            "contract 2",
        ),
        Requirement(
            "claude:call:not-delivered",
            "A call that the CLI answers itself, such as one with broken arguments, is told by a notice.",
            "ours",
        ),
        Requirement(
            "claude:turn:rounds",
            "A turn goes through any number of rounds; the order of calls counts over the whole turn.",
            "contract 4",
        ),
        Requirement(
            "claude:turn:stop-reasons",
            "Every way in which the CLI ends a turn has its neutral stop reason.",
            "contract 3",
        ),
        Requirement(
            "claude:turn:restarted-message",
            "A message that the CLI asks for again is discarded by name, and only the whole one counts.",
            "contract 3",
        ),
        Requirement(
            "claude:turn:provider-errors",
            "What the provider refuses fails the turn with its kind and in its own words.",
            "contract 7",
        ),
        Requirement(
            "claude:prompt:exact",
            "The user's text reaches the model as it is: no file is attached and no command is run.",
            "design 4",
        ),
        Requirement(
            "claude:prompt:system",
            "The system prompt replaces the CLI's own, or is appended to it, however long it is.",
            "contract 2",
        ),
        Requirement(
            "claude:tools:only-ours",
            "The model sees the host's tools with their schemas, and none of the CLI's unless asked for.",
            "contract 2",
        ),
        Requirement(
            "claude:images",
            "Images pass in prompts and in tool results.",
            "contract 2",
        ),
        # --- the bridge over HTTP -----------------------------------------------------------------------------------
        Requirement(
            "bridge:http:mcp-client", "The mcp package lists and calls our tools, in both ways to answer.", "ours"
        ),
        Requirement("bridge:http:parallel", "Calls that wait together are answered in any order.", "R-G4"),
        Requirement(
            "bridge:http:withdrawn",
            "A peer that cancels a request, or goes away, withdraws its call; nothing is left behind.",
            "R-H5",
        ),
        Requirement("bridge:http:progress", "Progress comes while a call waits, where the peer asked for it.", "R-A3"),
        Requirement("bridge:http:delivered-twice", "A call sent again with its id is the same call.", "R-G2"),
        Requirement(
            "bridge:http:doors",
            "Each conversation has a path and a token of its own on one loopback listener; nobody else gets in.",
            "R-K3",
        ),
        Requirement(
            "bridge:http:once",
            "Whatever a peer sends, repeats and drops, every request gets one answer or its place is gone.",
            "R-G1",
        ),
        Requirement("bridge:http:end", "The end of a conversation answers what waits.", "R-G1"),
        Requirement("bridge:http:failures", "A call that fails in the host is an error result for the model.", "R-G3"),
        Requirement(
            "bridge:relay:stdio",
            "Peers that only start processes reach the same tools over stdio: values whole, answers in any order.",
            "design 5",
        ),
        Requirement(
            "bridge:relay:end",
            "The relay ends when its input does, and never sends a message twice; a lost host is an error for "
            "its calls.",
            "R-C7, R-G2",
        ),
        Requirement("R-E2", "The relay answers initialize and tools/list within 60 ms of its start.", "R-E2"),
        Requirement(
            "R-A1",
            "No transport timeout hits a call that waits: a stream sends headers and a first byte at once.",
            "R-A1",
        ),
        Requirement("R-A3", "Signs of life come at least every 15 s while a call waits.", "R-A3"),
        # --- claude: the way over HTTP ------------------------------------------------------------------------------
        Requirement(
            "claude:bridge:config",
            "The bridge's token stands in a file only the user can read, which goes with the process.",
            "R-K1",
        ),
        Requirement(
            "claude:bridge:interrupt", "An interrupt while a call waits over HTTP keeps the conversation.", "R-H1"
        ),
        Requirement(
            "claude:bridge:lost", "A CLI killed with a call open over HTTP is resumed by the next message.", "R-F1"
        ),
        Requirement("claude:bridge:names", "The approving tool never takes a name of the host's.", "R-I1"),
        Requirement(
            "R-E3", "A CLI that does not ask for the tools is told with its version, and gets no message.", "R-E3"
        ),
        # --- claude: conversation life ------------------------------------------------------------------------------
        Requirement(
            "claude:life:turn-options",
            "Model, effort, tools, limit, instructions and schema of one turn hold for it alone and add no words.",
            "contract 2",
        ),
        Requirement(
            "claude:life:structured-output",
            "A schema gives a value that fits it, beside tools, and shows nothing of how the CLI does it.",
            "contract 2",
        ),
        Requirement("R-A2", "A call held for minutes arrives, on each transport we ship.", "R-A2"),
        Requirement("R-A5", "A tool may take longer than every watchdog that is known.", "R-A5"),
        Requirement("R-D1", "The CLI's input stays open, so that every approval can be answered.", "R-D1"),
        Requirement("R-D3", "An approval may take as long as a person does.", "R-D3"),
        Requirement("R-D6", "An answer that nothing follows is told as a stall; waiting for the host is none.", "R-D6"),
        Requirement("R-D8", "A stall names the calls of which nothing was heard.", "R-D8"),
        Requirement("R-E4", "Conversations have processes and tools of their own.", "R-E4"),
        Requirement("R-J5", "Only programs are started, never scripts of a shell, and never by one.", "R-J5"),
        Requirement(
            "claude:life:lost-continues", "After a crash a conversation goes on by itself where asked to.", "contract 6"
        ),
        Requirement("R-B2", "Images of 10 MB pass in prompts and results.", "R-B2"),
        Requirement("R-F2", "A session taken up without its history is told, never passed over in silence.", "R-F2"),
        Requirement("claude:life:effort", "Effort reaches the model; none switches thinking off.", "contract 2"),
        Requirement("claude:life:documents", "Documents and megabytes pass both ways.", "contract 3"),
        Requirement(
            "claude:life:history", "A given history is quoted before the first message, and this is told.", "contract 2"
        ),
        Requirement(
            "claude:life:fork", "A fork knows what was said up to it; both go their own way from there.", "contract 1"
        ),
        Requirement(
            "claude:life:background",
            "A subagent in the background belongs to the turn that started it; nothing leaks into the next.",
            "R-D2",
        ),
        Requirement("claude:options:bare", "The minimal mode adds nothing to what the model reads.", "contract 2"),
        Requirement(
            "claude:options:nobody-asked", "With nobody to ask, what needs a permission is denied.", "contract 2"
        ),
        Requirement(
            "claude:start:versions", "What differs between versions is one table; untested ones are told.", "R-M9"
        ),
        Requirement(
            "claude:server:killed",
            "A command that the CLI runs ends with a server that is killed, within seconds.",
            "R-C1",
        ),
        Requirement("claude:reap", "What the processes of a crashed server left is ended by the next one.", "R-C6"),
        # --- claude: delegation -------------------------------------------------------------------------------------
        Requirement(
            "claude:delegation:sources",
            "The CLI uses delegated MCP servers itself; their calls are shown with their source.",
            "contract 1",
        ),
        Requirement(
            "claude:delegation:secrets",
            "A delegated server sees neither our secrets nor the provider's, unless they are shared with it.",
            "design 10",
        ),
        Requirement(
            "claude:delegation:policy",
            "The CLI decides by the delegated policy to the letter; what it does not cover still arrives.",
            "contract 1",
        ),
        Requirement(
            "claude:delegation:refused", "A source or policy that cannot be handed over is named.", "contract 1"
        ),
        # --- claude: approvals and questions ------------------------------------------------------------------------
        Requirement(
            "claude:approvals:routed",
            "Whether an internal tool may run is a request of kind approval that names the call; several wait at once.",
            "contract 4",
        ),
        Requirement(
            "claude:approvals:answers",
            "Allowed once, always, with other arguments, denied with a reason, denied and stopped: the CLI does so.",
            "contract 4",
        ),
        Requirement(
            "claude:approvals:no-files",
            "Allowing always is remembered by the CLI's process and writes no file into the user's project.",
            "ours",
        ),
        Requirement(
            "claude:approvals:breaker",
            "A call that is denied again and again in one turn ends it, so that no model burns money on it.",
            "R-D2",
        ),
        Requirement("claude:approvals:own-tools", "The host's own tools are never asked about.", "contract 2"),
        Requirement(
            "claude:questions",
            "A question of the model reaches the host with its options; choices and free text reach the model.",
            "contract 4",
        ),
        Requirement(
            "claude:questions:elicitation",
            "A question of a delegated MCP server reaches the host with its schema, and the server gets the answer.",
            "contract 4",
        ),
        Requirement(
            "R-D11", "A question reaches the host or is refused with a reason; no answer is ever made up.", "R-D11"
        ),
        Requirement(
            "R-L1",
            "Usage is that of the turn; each message counts once.",
            "R-L1",
        ),
        Requirement(
            "R-L2",
            "Rate limits are told while the peer tries again, and fail the turn with their reason when it gives up.",
            "R-L2",
        ),
        Requirement(
            "R-L7",
            "A result up to the declared length reaches the model whole.",
            "R-L7",
        ),
        # --- the model loop -----------------------------------------------------------------------------------------
        Requirement(
            "model-loop:round:opened-together",
            "All calls of a round are opened together in the model's order; their results go back together in it.",
            "contract 4",
        ),
        Requirement("R-L5", "Missing and repeated call ids are made up, unique, and said to be so.", "R-L5"),
        Requirement(
            "model-loop:arguments:actionable",
            "Arguments that are no JSON or do not fit the schema come back as a short error "
            "that says how to mend them.",
            "ours",
        ),
        Requirement("model-loop:arguments:unknown-tool", "A call of a tool that is not on offer is answered.", "ours"),
        Requirement("model-loop:text:never-a-call", "Text that looks like a call is not executed.", "ours"),
        Requirement(
            "model-loop:retry:only-before-delivery",
            "A model call is tried again only for failures that pass, and only before anything of it was shown.",
            "ours",
        ),
        Requirement("model-loop:retry:malformed", "An answer its provider could not read is asked for again.", "ours"),
        Requirement("model-loop:turn-options", "Every option of a turn holds for that turn only.", "contract 2"),
        Requirement("model-loop:history:seeded", "A seeded history reaches the model exactly.", "contract 2"),
        Requirement(
            "model-loop:structured-output",
            "A structured answer is checked against its schema and asked for once more when it does not fit.",
            "contract 2",
        ),
        Requirement(
            "model-loop:limits", "Limits end a turn with their stop reason, with a notice before.", "contract 2"
        ),
        Requirement(
            "model-loop:usage", "A turn's usage is the sum of its model calls; unknown stays null.", "contract 3"
        ),
        Requirement(
            "model-loop:resume:exact",
            "A turn whose process was killed at any write goes on: no call is run twice, none lacks its result.",
            "contract 6",
        ),
        Requirement(
            "model-loop:resume:killed",
            "A real process that is killed at any point of a turn is replaced by one that finishes the turn.",
            "contract 6",
        ),
        Requirement("model-loop:guard", "A model that repeats itself hears so, then its turn fails.", "ours"),
        Requirement(
            "model-loop:compaction",
            "A prompt that does not fit loses old results first, then old rounds; newest rounds and pairs stay.",
            "ours",
        ),
        Requirement(
            "model-loop:overflow",
            "A prompt the provider refuses as too long is compacted once and sent again, whatever the window.",
            "ours",
        ),
        Requirement(
            "model-loop:results:cut", "A long result keeps head and tail in the prompt, and all on record.", "ours"
        ),
        Requirement(
            "model-loop:any-order", "Histories stay valid under arbitrary answers, cancels and failures.", "R-G1"
        ),
        Requirement("R-M1", "Idle and absolute limits of a turn hold and are told apart.", "R-M1"),
        Requirement(
            "claude:life:killed",
            "A CLI that dies fails the running turn as lost, with its exit code; the next message resumes its session.",
            "contract 6",
        ),
        Requirement(
            "claude:life:history-lost",
            "A session that cannot be resumed is replaced by a fresh one, and a notice says so.",
            "contract 6",
        ),
        Requirement(
            "claude:life:one-process",
            "A conversation has one process for all its turns, and none after its end.",
            "design 4",
        ),
        Requirement(
            "claude:start:isolated",
            "The CLI gets an environment by allow list and a short command line without prompts, tools or secrets.",
            "design 10",
        ),
        Requirement(
            "claude:start:not-logged-in",
            "Without a login the turn fails before any model call and says what to type.",
            "ours",
        ),
        Requirement(
            "claude:start:capabilities",
            "The capabilities name the CLI that would be started, and its version.",
            "contract 2",
        ),
        Requirement(
            "claude:start:refused",
            "A CLI that is missing, exits, talks nonsense, is silent or too old is refused in a line with the remedy.",
            "ours",
        ),
        Requirement(
            "R-F6",
            "A conversation whose process was closed while idle goes on with the next message.",
            "R-F6",
        ),
        Requirement(
            "R-H2",
            "A peer that does not stop when asked is ended within a bound, and the turn ends cancelled.",
            "R-H2",
        ),
        Requirement(
            "R-J7",
            "A peer sees an environment by allow list; other agents' session variables never reach it.",
            "R-J7",
        ),
        Requirement(
            "R-K1",
            "No secret stands on a command line.",
            "R-K1",
        ),
        Requirement(
            "R-M4",
            "One long-lived process serves a conversation, and its start is timed and told.",
            "R-M4",
        ),
        # --- the command line and the examples -----------------------------------------------------------------------
        Requirement(
            "cli:help",
            "Help names every command and shows examples; without a command it is help that is shown.",
            "ours",
        ),
        Requirement(
            "cli:usage",
            "What cannot be used is said in one line with the remedy, never as a stack trace, and exits with 2.",
            "ours",
        ),
        Requirement("cli:values:durations", "Durations are 90s, 10m, 2h or seconds.", "ours"),
        Requirement(
            "cli:values:json-pairs",
            "KEY=VALUE takes JSON values, and text where the value is no JSON.",
            "ours",
        ),
        Requirement("cli:run:prompt", "The prompt is the argument, or stdin.", "ours"),
        Requirement(
            "cli:run:connector-choice",
            "Without a connector the first usable one is taken and named with the reason; none exits with 3.",
            "ours",
        ),
        Requirement(
            "cli:run:json",
            "`--output json` is one object that fits the checked-in schema, also when the run fails.",
            "ours",
        ),
        Requirement(
            "cli:run:jsonl",
            "`--output jsonl` has a line for everything as it happens, from `started` to `finished` or `failed`.",
            "ours",
        ),
        Requirement(
            "cli:run:arguments-cut",
            "Arguments are cut to 300 characters unless `--full`, which also adds results.",
            "ours",
        ),
        Requirement(
            "cli:run:stdout-is-data",
            "stdout has data only, whatever tools and the programs they start print.",
            "ours",
        ),
        Requirement(
            "cli:run:exit-codes",
            "The exit code tells how the turn ended, by the table of the contract.",
            "ours",
        ),
        Requirement("cli:run:tools-file", "A tools file that cannot be used is one line that says where.", "ours"),
        Requirement(
            "cli:run:tool-timeout",
            "A tool that never returns holds up neither the turn nor the end of the command.",
            "ours",
        ),
        Requirement(
            "cli:run:dry-run",
            "A dry run shows connector, command line and tools, and starts nothing.",
            "ours",
        ),
        Requirement(
            "cli:run:interrupt-once",
            "Ctrl-C cancels the turn and prints the error shape; before there is a turn it ends the beginning.",
            "ours",
        ),
        Requirement(
            "cli:run:interrupt-twice",
            "A second Ctrl-C ends everything at once, even while a tool keeps the event loop busy.",
            "ours",
        ),
        Requirement(
            "cli:run:activity",
            "A person sees each call with its arguments, who answered and how long it took.",
            "ours",
        ),
        Requirement(
            "cli:run:approve",
            "Approvals are allowed, denied, or asked for at the terminal, and questions too.",
            "ours",
        ),
        Requirement(
            "cli:run:remote",
            "`--url` does the same job through a server, with the tools on the caller's side.",
            "ours",
        ),
        Requirement(
            "cli:run:claude",
            "The real Claude Code CLI does what the scripts of its model ask for, and the JSON says so.",
            "ours",
        ),
        Requirement(
            "cli:run:claude-broken",
            "A Claude CLI that is missing, ends at once, talks nonsense or is too old is one line with the remedy.",
            "ours",
        ),
        Requirement(
            "cli:terminal:live",
            "On a terminal text streams as it comes, with the activity beside it.",
            "ours",
        ),
        Requirement("cli:terminal:neutral", "Nothing that a model or a tool says is obeyed by the terminal.", "ours"),
        Requirement(
            "cli:terminal:plain",
            "Without a terminal, with --plain or NO_COLOR there are no escape sequences.",
            "ours",
        ),
        Requirement(
            "cli:demo",
            "The demo lets the real CLI call Python tools and quotes what they drew; without the CLI it exits with 3.",
            "ours",
        ),
        Requirement(
            "serve:killed",
            "After kill -9 of the server no process of it lives on, no model is called, and the client knows at once.",
            "ours",
        ),
        Requirement(
            "examples:run",
            "Every example runs with the connector `fake` and no key, and the small ones stay small.",
            "ours",
        ),
        Requirement(
            "claude:call:between-turns",
            "Between turns the CLI is answered and nothing it says is shown.",
            "contract 5",
        ),
        Requirement(
            "claude:turn:subagents",
            "What a subagent says or calls names the call it belongs to.",
            "contract 3",
        ),
        Requirement(
            "claude:turn:ends-idle",
            "A turn ends when the CLI's session is idle, not at the first result.",
            "R-D2",
        ),
        Requirement(
            "claude:internal-tools:shown",
            "A tool that the CLI runs itself is shown with its arguments and with what became of it.",
            "contract 3",
        ),
        Requirement(
            "claude:raw",
            "The CLI's lines are shown as they are when asked for.",
            "contract 3",
        ),
        Requirement(
            "R-B9",
            "Unknown types and lines that are no JSON are skipped, counted and told, and never end a turn.",
            "R-B9",
        ),
        Requirement(
            "R-D9",
            "Every request of a peer gets a valid answer; an unknown one is told.",
            "R-D9",
        ),
        Requirement(
            "R-E1",
            "A turn never runs without the host's tools.",
            "R-E1",
        ),
        Requirement(
            "R-H5",
            "A request that the peer withdraws is withdrawn; a late answer goes nowhere.",
            "R-H5",
        ),
        # --- conversations ------------------------------------------------------------------------------------------
        Requirement(
            "R-D4", "A message while a turn waits is refused with turn_in_progress and never aborts the turn.", "R-D4"
        ),
        Requirement(
            "R-M2", "Every poll says when the peer or the host last did something, so that silence can be seen.", "R-M2"
        ),
        Requirement(
            "conversation:fork",
            "A fork has the other's options, delegation and what its connector remembers, and goes its own way.",
            "contract 1",
        ),
        Requirement("R-M6", "A second message in an active turn is turn_in_progress and never queued.", "R-M6"),
        Requirement(
            "conversation:any-host-any-peer",
            "Whatever host and peer do, in whatever order, every request gets one outcome, nothing is pending "
            "after the end, nobody hangs, and the next turn is clean.",
            "ours",
        ),
        Requirement(
            "conversation:ids:repeated",
            "A call id that a peer repeats becomes a request id with a suffix; the call id itself never changes.",
            "contract 4",
        ),
        Requirement(
            "conversation:answers:rejected-list",
            "Each answer is judged alone; one error lists the rejected ones and all others were accepted.",
            "contract 4",
        ),
        Requirement(
            "conversation:session:on-demand",
            "The peer starts with the first message, or at begin with prestart.",
            "contract 1",
        ),
        Requirement(
            "conversation:session:idle-close",
            "An idle conversation is closed after its time to live, one that waits for its host never.",
            "contract 1",
        ),
        Requirement(
            "conversation:session:dead-beside-living",
            "A dead peer or a bug in one conversation never reaches another.",
            "design 4",
        ),
        Requirement(
            "conversation:session:gone",
            "A turn that finds its peer dead before the message was sent runs in a new session, once.",
            "design 4",
        ),
        Requirement(
            "conversation:owners", "A conversation of another owner is unknown to every operation.", "contract 1"
        ),
        Requirement(
            "conversation:cancel:order",
            "On cancel the peer gets one interrupt and nothing before it; the turn ends cancelled whatever the peer "
            "calls its end, and what it asks after it is never opened.",
            "contract 5",
        ),
        Requirement(
            "conversation:cancel:before-start",
            "A cancel before the peer was started ends the turn at once.",
            "contract 5",
        ),
        Requirement(
            "conversation:cancel:deadline",
            "A peer that does not stop is left after a bound, and the conversation goes on in a new session.",
            "contract 5",
        ),
        Requirement(
            "conversation:deadline:request",
            "A request has its deadline from the moment it is opened; when it passes the peer gets an error or a "
            "refusal.",
            "contract 2",
        ),
        Requirement(
            "conversation:deadline:turn",
            "The absolute and the idle limit of a turn are told apart; waiting for the host is not silence.",
            "contract 2",
        ),
        Requirement(
            "conversation:deadline:next-turn-waits",
            "After a timeout the next turn starts when the peer has stopped, and late events never reach it.",
            "design 4",
        ),
        # --- the fake connector -------------------------------------------------------------------------------------
        Requirement(
            "fake:echo", "Without a script it echoes, and makes the calls that the message tells it to make.", "ours"
        ),
        Requirement(
            "fake:requests:all-kinds",
            "It raises all three kinds of request, in parallel and with repeated ids, in both styles of the port.",
            "ours",
        ),
        Requirement("fake:requests:withdrawn", "It withdraws requests, explicitly and by its end.", "ours"),
        Requirement(
            "fake:script:every-step", "Everything a peer can show, every end and every error can be scripted.", "ours"
        ),
        Requirement(
            "fake:script:precise-errors",
            "A script that cannot be used is refused in one line that names file, turn, step and member.",
            "ours",
        ),
        Requirement("fake:peer:dies", "It dies now or between turns, and the next turn runs in a new session.", "ours"),
        Requirement(
            "fake:peer:ends-with-its-script", "A message past the end of its script gets an error that says so.", "ours"
        ),
        Requirement(
            "fake:delegation", "It runs and decides itself what was delegated, and reports delegated calls.", "ours"
        ),
        Requirement(
            "fake:options",
            "Scripts and what they say of the peer come from connector options; files are restricted.",
            "ours",
        ),
        Requirement(
            "claude:start:options",
            "Options become flags and variables; a wrong one is refused by name, and none is ignored.",
            "contract 2",
        ),
        Requirement(
            "claude:start:credentials",
            "The CLI gets the credentials that were chosen and no others.",
            "design 10",
        ),
        Requirement(
            "R-A4",
            "The time limit we set for tool calls is what the peer is started with.",
            "R-A4",
        ),
        Requirement(
            "R-E5",
            "The user's settings, hooks, plugins and MCP servers are never loaded; "
            "the login stays unless a key is used.",
            "R-E5",
        ),
        Requirement(
            "R-J4",
            "Prompts, tools and policies never go through the command line, which stays under 4 KB.",
            "R-J4",
        ),
        Requirement(
            "R-K5",
            "There is no traffic but the model's.",
            "R-K5",
        ),
        Requirement(
            "scripted-model:openai:responses",
            "OpenAI's own client accepts the scripted Responses API, which is as strict about pairs as the real one.",
            "ours",
        ),
        Requirement("scripted-model:openai:chat", "The same for Chat Completions.", "ours"),
        Requirement("scripted-model:openai:quirks", "What other servers get wrong can be switched on.", "ours"),
        Requirement("scripted-model:ollama", "The scripted model speaks Ollama's native API.", "ours"),
        Requirement("scripted-model:gemini", "The scripted model speaks the Gemini API.", "ours"),
        Requirement("scripted-model:errors", "Errors have the shape of the API that was asked.", "ours"),
        # --- connectors for bare models -----------------------------------------------------------------------------
        Requirement(
            "openai:turn", "A turn passes ids, order, parallelism and text through, in both APIs.", "contract 4"
        ),
        Requirement(
            "openai:responses:items-go-back",
            "With the Responses API every item goes back as it came, reasoning before its calls, and nothing is "
            "stored.",
            "ours",
        ),
        Requirement("openai:responses:chained", "The server may keep the history, by option.", "ours"),
        Requirement("openai:images", "Images reach the model from prompts and from tool results.", "contract 3"),
        Requirement("openai:turn-options", "Every option of a turn is on the wire.", "contract 2"),
        Requirement(
            "openai:stop-reasons", "The API's ends become our stop reasons; a cut call is not run.", "contract 3"
        ),
        Requirement(
            "openai:errors", "Refusals of the server fail the turn with their reason and status.", "contract 7"
        ),
        Requirement(
            "openai:cancel", "A cancel closes the connection; what was heard stays in the history.", "contract 5"
        ),
        Requirement("openai:history", "A seeded history is on the wire with its pairs.", "contract 2"),
        Requirement("openai:key", "A key goes only to the server it is for; without one it says what to type.", "ours"),
        Requirement(
            "openai:chat:tolerance",
            "What compatible servers get wrong comes out as if they had been right; no call is lost, merged or "
            "invented.",
            "ours",
        ),
        Requirement("openai:responses:events", "Every event and end of a response is read as what it means.", "ours"),
        Requirement("openai:responses:llama-server", "What llama.cpp's server does otherwise is tolerated.", "ours"),
        Requirement(
            "openai:responses:hosted-tools",
            "Tools the provider runs are shown as its own; its approvals are requests; secrets stay here unless "
            "shared.",
            "contract 2",
        ),
        Requirement(
            "ollama:turn",
            "A turn passes ids, order, parallelism and values through Ollama's API.",
            "contract 4",
        ),
        Requirement("R-L3", "Ollama's window is always sent, and a prompt it cut is told.", "R-L3"),
        Requirement("R-L4", "Ollama's native endpoint is used.", "R-L4"),
        Requirement("ollama:model", "What a model or server lacks is said before anything is sent.", "contract 7"),
        Requirement("ollama:cloud", "Models that run elsewhere are refused unless allowed.", "design 10"),
        Requirement(
            "ollama:structured-output",
            "A schema is enforced, or told where calls must stay possible.",
            "ours",
        ),
        Requirement("ollama:thinking", "Effort switches thinking on and off.", "contract 2"),
        Requirement(
            "ollama:errors",
            "Errors before and in the stream are the turn's; unreadable calls are retried.",
            "ours",
        ),
        Requirement("ollama:stop-reasons", "An answer that reached its length says so.", "contract 3"),
        Requirement("ollama:cancel", "A cancel closes the connection to Ollama.", "contract 5"),
        Requirement("ollama:images", "Images go where templates look for them.", "contract 3"),
        Requirement("anthropic:turn", "A turn passes ids, order, parallelism and text through the API.", "contract 4"),
        Requirement("anthropic:results-first", "Results come first in their message, also after a cancel.", "ours"),
        Requirement("anthropic:cache", "The stable beginning of a prompt is marked for the cache.", "ours"),
        Requirement("anthropic:pause", "A pause of the provider is gone on from.", "ours"),
        Requirement("anthropic:turn-options", "Every option of a turn is on the wire or refused.", "contract 2"),
        Requirement("anthropic:images", "Images reach the model from prompts and from tool results.", "contract 3"),
        Requirement(
            "anthropic:stop-reasons",
            "The API's ends become our stop reasons; a cut call is not run.",
            "contract 3",
        ),
        Requirement("anthropic:errors", "Failures of the API are the turn's, with their reason.", "contract 7"),
        Requirement("anthropic:cancel", "A cancel closes the connection to the API.", "contract 5"),
        Requirement("anthropic:key", "A key goes only to the server it is for.", "ours"),
        Requirement("anthropic:events", "Every event of the API, and what other servers make of it, is read.", "ours"),
        Requirement("anthropic:recordings", "Recorded streams are read alike however they are cut.", "issue 5"),
        Requirement(
            "claude:misbehaving:long-line",
            "A line of 50 MiB reaches the host whole.",
            "R-B1, R-B4, R-J1",
        ),
        Requirement(
            "claude:misbehaving:line-limit",
            "A line over the limit fails the turn; the next message works.",
            "R-B3",
        ),
        Requirement(
            "claude:misbehaving:stderr",
            "10 MB of stderr before the answer block nobody.",
            "R-B10",
        ),
        Requirement(
            "claude:misbehaving:garbage",
            "Stray lines and unknown kinds never end a turn and are told once per kind.",
            "R-B9",
        ),
        Requirement(
            "claude:misbehaving:pieces",
            "Output cut anywhere, within characters too, gives the same messages.",
            "R-B5, R-J2, R-J3",
        ),
        Requirement(
            "claude:misbehaving:identical-calls",
            "Identical parallel calls of one round each get their own answer.",
            "R-G4",
        ),
        Requirement(
            "claude:misbehaving:dies",
            "A CLI that dies, in the middle of a line too, fails the turn at once; the next message works.",
            "R-B3",
        ),
        Requirement(
            "claude:misbehaving:dies-with-a-call-open",
            "One dead CLI leaves another conversation's open call alone.",
            "ours",
        ),
        Requirement(
            "claude:misbehaving:cancel",
            "A cancel ends every turn within a bound, and the next message works.",
            "R-H1, R-H2, R-H3",
        ),
        Requirement(
            "claude:misbehaving:tool-deadline",
            "A call nobody answers expires with exactly one error result for the model.",
            "R-A6",
        ),
        Requirement(
            "claude:misbehaving:stalls",
            "A CLI that never answers stalls the turn and is replaced.",
            "R-M1",
        ),
        Requirement(
            "claude:misbehaving:second-message",
            "A second message in a running turn is refused and disturbs nothing.",
            "R-D4, R-M6",
        ),
        Requirement(
            "claude:misbehaving:stdin-stays-open",
            "The CLI's input stays open until its conversation ends.",
            "R-A7, R-D1",
        ),
        Requirement(
            "claude:misbehaving:grandchild",
            "Nothing survives the end of a conversation, in a session of its own neither.",
            "R-C2, R-C3, R-C4",
        ),
        Requirement(
            "claude:misbehaving:time-to-live",
            "An idle conversation lets its processes go.",
            "R-C2",
        ),
        Requirement(
            "claude:misbehaving:cancelled-anywhere",
            "A harness cancelled at any time leaves no process and no descriptor.",
            "R-C5, R-C9",
        ),
        Requirement("local:choice", "The tiny model is offered the tools that share words with the request.", "ours"),
        Requirement("local:missing", "Without its packages or its file the connector says what to type.", "contract 7"),
        Requirement("local:calls-fit", "Every call of the embedded model fits its schema.", "ours"),
        Requirement("local:streams", "The embedded model streams, stops when cancelled and is loaded once.", "ours"),
        # --- agents and their connectors ----------------------------------------------------------------------------
        Requirement("peers:pinned", "The agents that live tests talk to are pinned names and versions.", "ours"),
        Requirement("jsonrpc:both-ways", "Both parties ask at the same time, with ids of their own.", "acp 1"),
        Requirement("jsonrpc:once", "A request of a peer is answered exactly once, however it ends.", "R-G1"),
        Requirement("jsonrpc:generous", "A message of any shape is read without falling over.", "R-B9"),
        Requirement(
            "R-G6",
            "A call at the bridge gets the id of the peer's stream, by tool, arguments and order where none is told.",
            "R-G6",
        ),
        Requirement("R-F4", "Each agent is resumed in the way it understands.", "R-F4"),
        Requirement("R-M9", "Peers are spoken to over their structured protocols, pinned and checked.", "R-M9"),
        Requirement("agents:expected", "A connector promises exactly what was seen of its agent.", "issue 6"),
        Requirement("acp:resume", "An earlier session is taken up without showing its history again.", "R-F4, R-F5"),
        Requirement("acp:settings", "Mode and model are set before the first message, or refused.", "contract 2"),
        Requirement("acp:not-logged-in", "An agent that is not logged in says what to type.", "contract 7"),
        Requirement("acp:turn", "An agent's updates become a turn's stream; unknown ones end nothing.", "contract 3"),
        Requirement("acp:own-tools", "An agent's own tools are shown once, from pieces, and closed.", "contract 3"),
        Requirement("acp:provider-errors", "A provider's failure has its reason behind every agent.", "contract 7"),
        Requirement("acp:usage", "Figures are read as each agent means them.", "R-L1"),
        Requirement("acp:commands", "A text that an agent would take for a command is refused.", "contract 3"),
        Requirement("acp:permissions", "Permissions are the host's decision, with the options offered.", "contract 4"),
        Requirement("acp:questions", "An agent's form is a question, its answers the form's content.", "contract 4"),
        Requirement("acp:cancel", "A cancel comes first and closes all that an agent has asked.", "contract 5"),
        Requirement("copilot:sdk", "Copilot's server mode keeps ids, order and denials.", "copilot 13"),
        Requirement("copilot:acp", "Copilot's events tell failures that its ACP updates hide.", "copilot 8"),
        Requirement("copilot:frames", "Messages with lengths are cut right, however the bytes come.", "R-B5"),
        Requirement("R-M10", "An unsupported major version is refused before a session opens.", "R-M10"),
        Requirement("R-B5", "Any cutting of the bytes gives the same messages.", "R-B5"),
        Requirement("codex:strict-config", "Codex never goes on with another configuration than ours.", "codex 1"),
        Requirement("codex:tools-closed", "Codex's own tools are closed unless asked for.", "design 10"),
        Requirement("codex:delegation", "Tool sources become servers of Codex, secrets only if shared.", "contract 2"),
        Requirement("codex:turn", "What the model says on the way and what it says last are told apart.", "contract 3"),
        Requirement("codex:call", "A call keeps id, order and arguments; its result arrives as it is.", "contract 4"),
        Requirement("codex:ends", "Every end of a Codex turn has its stop reason or error.", "contract 3"),
        Requirement("codex:retry", "What a repeated model call had streamed is taken back.", "contract 3"),
        Requirement("codex:usage", "Codex's totals become the figures of one turn.", "R-L1"),
        Requirement("codex:model-per-turn", "Options of one turn are not remembered by Codex.", "contract 2"),
        Requirement("codex:content", "Content Codex cannot carry is refused before anything is sent.", "contract 3"),
        Requirement("codex:generous", "Unknown messages of Codex are told once and end nothing.", "R-B9"),
        Requirement("codex:approvals", "Commands and file changes are asked for; the host decides.", "contract 4"),
        Requirement("codex:questions", "Questions of the model reach the host, its answers the model.", "contract 4"),
        Requirement("codex:withdrawn", "A request Codex takes back is withdrawn.", "contract 4"),
        Requirement("codex:cancel", "A cancel is one interrupt, and nothing of the turn stays open.", "contract 5"),
        Requirement("codex:max-turns", "A limit of model calls stops Codex before the next call.", "contract 2"),
        Requirement("codex:resume", "The next process goes on with the same thread.", "contract 6"),
        Requirement("codex:types", "The types Codex speaks are those the connector relies on.", "R-M9"),
        Requirement("codex:found", "Codex's native program and version are found, or it is said what to type.", "R-J5"),
        Requirement("models:list", "`harness models` asks every connector that keeps a list of models.", "ours"),
        Requirement("models:pull", "`harness models pull` brings a model onto its server, with progress.", "ours"),
        Requirement("turn:end:error-has-a-name", "A turn that ends by an error has failed with a code.", "contract 3"),
        Requirement("bench:tools", "`harness bench tools` counts what a model did right, task by task.", "ours"),
    )
)
