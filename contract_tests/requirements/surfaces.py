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
    Requirement("ujmw:codec", "Values are read in any case and form of their enums, and written in one.", "issue 9"),
    Requirement("ujmw:shapes", "What UJMW's clients know by another name or form they also get so.", "issue 9"),
    Requirement("ujmw:operations", "Every operation of the contract is there under its PascalCase name.", "issue 9"),
    Requirement("ujmw:bytes", "Bodies as the stock client sends them are read, whole or in chunks.", "ujmw 1, 7"),
    Requirement("ujmw:replies", "A reply has `return`, `fault` and `_` only; a void one no `return`.", "ujmw 1, 3"),
    Requirement("ujmw:faults", "Every failed call is 200 with a text that starts with its code.", "ujmw 1, 4"),
    Requirement("ujmw:auth", "A refusal of the caller is 401 or 403, in plain text.", "ujmw 1"),
    Requirement("ujmw:side-channel", "The member `_` is no argument; it is traced.", "ujmw 1"),
    Requirement("ujmw:duplicates", "A call that is delivered twice does its work once.", "ujmw 3"),
    Requirement("ujmw:waits", "A wait is bounded, and freed when its client leaves or the server stops.", "ujmw 3"),
    Requirement("ujmw:information", "Everybody may read what the service is; an operation is not read.", "ujmw 5"),
    Requirement("ujmw:routes", "Paths know no case, may name a connector, and are 404 if unknown.", "ujmw 1, 4"),
    Requirement("ujmw:conversation", "A whole conversation with calls and an approval runs over UJMW.", "issue 9"),
    Requirement("ujmw:own-client", "Our own client of UJMW services drives a conversation by it.", "ours"),
    Requirement("ujmw:openapi", "The description has each operation with its concrete schemas.", "ujmw 4"),
    Requirement("ujmw:settings", "A server hides details of faults, or writes enums as numbers.", "ujmw 2, 4"),
    Requirement(
        "mcp-server:ask",
        "The tool `ask` runs a turn to its end and gives text, conversation, usage and stop reason, also as data.",
        "issue 9",
    ),
    Requirement(
        "mcp-server:progress", "A turn's progress is told while it runs, and every 15 s that it goes on.", "R-A3"
    ),
    Requirement("mcp-server:conversation", "A conversation goes on by the id that an answer named.", "issue 9"),
    Requirement("mcp-server:cancel", "A cancelled request cancels its turn; the conversation stays usable.", "issue 9"),
    Requirement(
        "mcp-server:elicitation",
        "Approvals and questions are forms at a client that shows forms; whatever is no yes is a no.",
        "issue 9",
    ),
    Requirement("mcp-server:nobody", "Without a person the policy decides, and a denial says what helps.", "issue 9"),
    Requirement(
        "mcp-server:errors",
        "Mistakes and failed turns are results with our code; a protocol error is one; no stack traces.",
        "R-G3",
    ),
    Requirement("mcp-server:tools", "Tools have the contract's schemas, which what they give fits.", "issue 9"),
    Requirement("mcp-server:hosting", "A client hosts tools by the operations of the contract.", "issue 9"),
    Requirement("mcp-server:http", "Over HTTP, tokens, Host and Origin are judged as everywhere.", "issue 9"),
    Requirement("mcp-server:stdio", "On stdio the protocol has stdout alone; EOF ends server and peers.", "R-C3"),
    Requirement("mcp-server:claude", "An MCP client asks the real CLI; its person gives leave to a tool.", "issue 9"),
    Requirement("mcp-server:inspector", "The MCP inspector lists the tools and calls `ask`.", "issue 9"),
)
