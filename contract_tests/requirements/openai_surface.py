"""What is promised about the surfaces that speak a provider's wire, and about OpenAI's."""

from contract_tests.requirements.entry import Requirement

OPENAI_SURFACE = (
    Requirement(
        "compatible:tip", "A history leads to its conversation by role, text, calls and results.", "issue 9, 1"
    ),
    Requirement(
        "openai:tool-loop",
        "A tool loop of the openai package is one peer, one conversation and one turn.",
        "issue 9, 1",
    ),
    Requirement(
        "openai:continues",
        "A request whose history is where a conversation stands goes on with its peer.",
        "issue 9, 1",
    ),
    Requirement("openai:users", "Users with the same words never get each other's answers.", "issue 9, 1"),
    Requirement(
        "openai:edited", "What was edited or regenerated begins a conversation with the history.", "issue 9, 1"
    ),
    Requirement(
        "openai:kind", "Other tools, another model or other instructions are another conversation.", "issue 9, 1"
    ),
    Requirement(
        "openai:missing-results",
        "A request that answers only some open calls is refused and changes nothing.",
        "issue 9, 1",
    ),
    Requirement(
        "openai:late-call", "A call that comes after the peer fell silent is in the next message.", "issue 9, 1"
    ),
    Requirement("openai:named", "`X-Harness-Conversation` names the conversation, in every answer too.", "issue 9, 1"),
    Requirement("openai:restart", "What a new server does not know any more is found again, or seeded.", "issue 9, 1"),
    Requirement(
        "openai:side-requests",
        "Requests without tools can be refused, or answered without keeping a peer.",
        "issue 9, 1",
    ),
    Requirement(
        "openai:retry",
        "A repeated request joins its reply while it grows, and gets it for a while after.",
        "issue 9, 1",
    ),
    Requirement("openai:disconnect", "Who leaves has cancelled, unless somebody else still reads.", "issue 9, 1"),
    Requirement(
        "openai:abandoned", "Conversations that nobody goes on with end, and their peers with them.", "issue 9, 1"
    ),
    Requirement(
        "openai:keeps-alive",
        "A reply that takes long keeps its line busy; one that breaks is never taken for good.",
        "R-A1",
    ),
    Requirement("openai:stops", "A server that stops says so in open streams and refuses new requests.", "ours"),
    Requirement(
        "openai:asides",
        "Approvals and questions follow the server's policy, or are calls of reserved tools.",
        "issue 9, 1",
    ),
    Requirement(
        "openai:meaning", "What would change the answer is refused, and ignored hints are named.", "issue 9, 1"
    ),
    Requirement(
        "openai:content", "Every kind of content arrives as it is, or is refused; nothing is fetched.", "contract 3"
    ),
    Requirement("openai:ends", "Every end of a turn, its usage and its error have OpenAI's shape.", "issue 9, 1"),
    Requirement("openai:models", "The connectors of the server are its models; another is a 404.", "issue 9, 1"),
    Requirement(
        "openai:structured", "A response format reaches the connector, and the content is that JSON.", "issue 9, 1"
    ),
    Requirement("openai:parallel", "Calls of one message come together, or one by one if the client asks.", "R-M7"),
    Requirement("openai:claude", "The openai package runs tool loops with the real Claude CLI.", "issue 9"),
    Requirement(
        "responses:tool-loop",
        "A tool loop over the Responses API is one peer and one turn, with the history or by the response's id.",
        "issue 9, 1",
    ),
    Requirement(
        "responses:previous", "A response is continued by its id once, as long as it is the last one.", "issue 9, 1"
    ),
    Requirement(
        "responses:conversations",
        "Histories of items lead to their conversation, and edited ones to a new one.",
        "issue 9, 1",
    ),
    Requirement(
        "responses:events",
        "A stream has the API's events in its order, and ends with what comes in one piece.",
        "issue 9, 1",
    ),
    Requirement("responses:ends", "Every end of a turn, its usage and its error have the API's shape.", "issue 9, 1"),
    Requirement(
        "responses:meaning", "What would change the answer is refused, and ignored hints are named.", "issue 9, 1"
    ),
    Requirement("responses:content", "Every item and part arrives as it is, or is refused by its place.", "contract 3"),
    Requirement("responses:tools", "Tools in namespaces are called under their client's names.", "issue 9, 1"),
    Requirement(
        "responses:structured", "A text format reaches the connector, and the text is that JSON.", "issue 9, 1"
    ),
    Requirement("responses:retry", "A repeated request joins or gets the same response.", "issue 9, 1"),
    Requirement(
        "responses:stacking", "Our connector `openai` keeps the contract on our own Responses API.", "issue 9, 7"
    ),
    Requirement("responses:codex", "The real Codex works with any connector as its model.", "issue 9"),
    Requirement("responses:claude", "A tool loop over the Responses API is one real Claude CLI.", "issue 9"),
    Requirement("R-M11", "The OpenAI surface hands the client's tools to the agent, many clients at a time.", "R-M11"),
)
