"""What is promised about the orchestrator."""

from contract_tests.requirements.entry import Requirement

ORCHESTRATOR = (
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
)
