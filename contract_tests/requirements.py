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
    )
)
