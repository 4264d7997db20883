"""What is promised about the connector `claude`."""

from contract_tests.requirements.entry import Requirement

CLAUDE = (
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
    Requirement(
        "claude:bridge:config",
        "The bridge's token stands in a file only the user can read, which goes with the process.",
        "R-K1",
    ),
    Requirement("claude:bridge:interrupt", "An interrupt while a call waits over HTTP keeps the conversation.", "R-H1"),
    Requirement(
        "claude:bridge:lost", "A CLI killed with a call open over HTTP is resumed by the next message.", "R-F1"
    ),
    Requirement("claude:bridge:names", "The approving tool never takes a name of the host's.", "R-I1"),
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
    Requirement(
        "claude:life:lost-continues", "After a crash a conversation goes on by itself where asked to.", "contract 6"
    ),
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
    Requirement("claude:options:nobody-asked", "With nobody to ask, what needs a permission is denied.", "contract 2"),
    Requirement("claude:start:versions", "What differs between versions is one table; untested ones are told.", "R-M9"),
    Requirement(
        "claude:server:killed",
        "A command that the CLI runs ends with a server that is killed, within seconds.",
        "R-C1",
    ),
    Requirement("claude:reap", "What the processes of a crashed server left is ended by the next one.", "R-C6"),
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
    Requirement("claude:delegation:refused", "A source or policy that cannot be handed over is named.", "contract 1"),
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
)
