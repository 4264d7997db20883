"""What is promised about the MCP bridge."""

from contract_tests.requirements.entry import Requirement

BRIDGE = (
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
    Requirement("bridge:http:mcp-client", "The mcp package lists and calls our tools, in both ways to answer.", "ours"),
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
        "The relay ends when its input does, and never sends a message twice; a lost host is an error for its calls.",
        "R-C7, R-G2",
    ),
)
