"""What is promised about client libraries as they come from their index, before real agents."""

from contract_tests.requirements.entry import Requirement

CLIENTS = (
    Requirement(
        "clients:loop",
        "A library's tool loop runs each call once, on one process and one conversation with one history.",
        "issue 9, show",
    ),
    Requirement("clients:stream", "A library streams a tool loop with parallel calls.", "issue 9, show"),
    Requirement("clients:cancel", "A library that leaves, or is cancelled, ends its agent.", "issue 9, show"),
    Requirement(
        "clients:retry",
        "A library that tries again after its timeout gets the answer, and nothing ran twice.",
        "issue 9, show",
    ),
    Requirement(
        "clients:users", "Two users of a library with the same words at the same time have an agent each.", "R-M11"
    ),
    Requirement(
        "clients:regenerated",
        "A message that a library sends again begins a conversation that knows the history.",
        "issue 9, show",
    ),
    Requirement(
        "clients:structured",
        "An answer in a schema is a library's own object, where the agent can, or where the library asks in words.",
        "issue 9, 1",
    ),
)
