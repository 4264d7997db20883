"""What is promised about the Anthropic-compatible surface."""

from contract_tests.requirements.entry import Requirement

ANTHROPIC_SURFACE = (
    Requirement(
        "anthropic-surface:threads",
        "A client that sends only what is new goes on, or learns that it must send the whole history.",
        "anthropic 2.14, lib/threads",
    ),
    Requirement(
        "anthropic-surface:history",
        "Messages become the contract's history; thinking and cache marks vanish wherever they stand, so a mark that "
        "moves changes nothing.",
        "issue 9, 2",
    ),
    Requirement(
        "anthropic-surface:meaning",
        "What would change the answer and cannot be honoured is a 400 that names its place; hints are ignored by name.",
        "issue 9, 1",
    ),
    Requirement(
        "anthropic-surface:events",
        "A stream has the API's events in the API's order: blocks of thinking, text and calls, then how it ended.",
        "https://docs.claude.com/en/docs/build-with-claude/streaming",
    ),
    Requirement(
        "anthropic-surface:errors",
        "Errors have the API's shape, type and status, and say whether to try again; one in mid-stream is an event.",
        "https://docs.claude.com/en/api/errors",
    ),
    Requirement(
        "anthropic-surface:side-requests",
        "Claude Code's probes, titles and token counts are answered without an agent; others' requests never are.",
        "issue 9, 2",
    ),
    Requirement(
        "anthropic-surface:sdk",
        "The anthropic package runs tool loops over it, streaming and not, parallel, with thinking, and cancels.",
        "issue 9, 2",
    ),
    Requirement(
        "anthropic-surface:agents",
        "The anthropic package runs loops with every real agent: one conversation, users apart, cancel to the bottom.",
        "issue 9",
    ),
    Requirement(
        "anthropic-surface:claude-code",
        "The real Claude Code works on it with its own tools: one inner process and conversation over the whole loop.",
        "issue 9, 7",
    ),
)
