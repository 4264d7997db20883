"""What is promised about the loop around a bare model, and the scripted model."""

from contract_tests.requirements.entry import Requirement

MODEL_LOOP = (
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
    Requirement(
        "model-loop:round:opened-together",
        "All calls of a round are opened together in the model's order; their results go back together in it.",
        "contract 4",
    ),
    Requirement(
        "model-loop:arguments:actionable",
        "Arguments that are no JSON or do not fit the schema come back as a short error that says how to mend them.",
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
    Requirement("model-loop:limits", "Limits end a turn with their stop reason, with a notice before.", "contract 2"),
    Requirement("model-loop:usage", "A turn's usage is the sum of its model calls; unknown stays null.", "contract 3"),
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
    Requirement("model-loop:any-order", "Histories stay valid under arbitrary answers, cancels and failures.", "R-G1"),
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
    Requirement("models:list", "`harness models` asks every connector that keeps a list of models.", "ours"),
    Requirement("models:pull", "`harness models pull` brings a model onto its server, with progress.", "ours"),
)
