"""What is promised about the surfaces and their clients."""

from contract_tests.requirements.entry import Requirement

SURFACES = (
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
    Requirement("remote:shared-stream", "All pollers of a turn share one stream.", "design 8"),
    Requirement("remote:resumes", "A stream that breaks off is resumed without a gap or a repetition.", "R-M8"),
    Requirement("remote:server-gone", "A server that is gone is an error at once, never a hang.", "ours"),
    Requirement("remote:import-light", "The remote client loads neither Starlette nor uvicorn.", "ours"),
    Requirement(
        "serve:command",
        "The command prints its address, ends with 0 on a signal and at once on a second one.",
        "ours",
    ),
    Requirement(
        "serve:killed",
        "After kill -9 of the server no process of it lives on, no model is called, and the client knows at once.",
        "ours",
    ),
)
