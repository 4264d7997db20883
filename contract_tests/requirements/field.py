"""What is promised about what users of comparable bridges suffered from."""

from contract_tests.requirements.entry import Requirement

FIELD = (
    Requirement("R-B3", "A lost peer fails its turn as lost, and the next message goes on.", "R-B3"),
    Requirement("R-F1", "A conversation goes on in the peer's own session after a restart.", "R-F1"),
    Requirement("R-C2", "The end of a conversation ends its peer and all that it started.", "R-C2"),
    Requirement("R-D7", "An agent that does not ask before it acts is not trusted with its own tools.", "R-D7"),
    Requirement("R-D12", "That an agent's question reaches the host is shown with the installed agent.", "R-D12"),
    Requirement("R-D2", "A call that is refused again and again, unchanged, ends the turn with 'loop_guard'.", "R-D2"),
    Requirement("R-D10", "One policy gives one answer, whatever the connector and the kind of request.", "R-D10"),
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
    Requirement(
        "R-G2",
        "A request that a peer raises again while it is open is the same request, shown again and not made again.",
        "R-G2",
    ),
    Requirement("R-G4", "Two identical parallel calls are two requests with a result each.", "R-G4"),
    Requirement(
        "R-A6",
        "On its deadline a request leaves the pending list and exactly one error result goes to the model.",
        "R-A6",
    ),
    Requirement("R-H1", "A cancel closes every open request even if the peer says nothing.", "R-H1"),
    Requirement(
        "R-H3",
        "After a cancel the turn is cancelled, not failed, and the next message works in the same conversation.",
        "R-H3",
    ),
    Requirement(
        "R-G1",
        "Every call id has exactly one result on every path out of a turn, under any interleaving.",
        "R-G1",
    ),
    Requirement("R-F7", "All three kinds of request survive a restart.", "R-F7"),
    Requirement("R-F3", "A peer that is lost again and again fails each turn; nothing goes round.", "R-F3"),
    Requirement("R-F5", "What was shown before a restart is never shown again as new.", "R-F5"),
    Requirement(
        "R-C8",
        "How many peers run is limited: the longest idle one makes room and resumes with its next message; what "
        "each takes is told.",
        "R-C8",
    ),
    Requirement(
        "R-C6",
        "What the peers of a crashed server left running is ended at the next start, by recorded mark, pid and "
        "start time; what a live one runs is left alone.",
        "R-C6",
    ),
    Requirement(
        "R-J1",
        "U+2028, U+2029, U+0085, VT, FF and CR inside strings never end a line, over stdio and HTTP.",
        "R-J1",
    ),
    Requirement(
        "R-J3",
        "Text is UTF-8 both ways, never the locale's; an unpaired surrogate breaks nothing.",
        "R-J3",
    ),
    Requirement("R-B4", "Nothing in the chain limits sizes below what is configured: lines, bodies, results.", "R-B4"),
    Requirement(
        "R-M8",
        "A stream resumes exactly behind the last event, has heartbeats, and says when earlier items are gone.",
        "R-M8",
    ),
    Requirement("R-K2", "A server's token is in no output, log line, error or child's environment.", "R-K2"),
    Requirement("R-K3", "Host and Origin are checked before the token, which is compared in constant time.", "R-K3"),
    Requirement("R-K4", "The token is printed only on demand, and kept where only its user can read it.", "R-K4"),
    Requirement("R-E2", "The relay answers initialize and tools/list within 60 ms of its start.", "R-E2"),
    Requirement(
        "R-A1",
        "No transport timeout hits a call that waits: a stream sends headers and a first byte at once.",
        "R-A1",
    ),
    Requirement("R-A3", "Signs of life come at least every 15 s while a call waits.", "R-A3"),
    Requirement("R-E3", "A CLI that does not ask for the tools is told with its version, and gets no message.", "R-E3"),
    Requirement("R-A2", "A call held for minutes arrives, on each transport we ship.", "R-A2"),
    Requirement("R-A5", "A tool may take longer than every watchdog that is known.", "R-A5"),
    Requirement("R-D1", "The CLI's input stays open, so that every approval can be answered.", "R-D1"),
    Requirement("R-D3", "An approval may take as long as a person does.", "R-D3"),
    Requirement("R-D6", "An answer that nothing follows is told as a stall; waiting for the host is none.", "R-D6"),
    Requirement("R-D8", "A stall names the calls of which nothing was heard.", "R-D8"),
    Requirement("R-E4", "Conversations have processes and tools of their own.", "R-E4"),
    Requirement("R-J5", "Only programs are started, never scripts of a shell, and never by one.", "R-J5"),
    Requirement("R-B2", "Images of 10 MB pass in prompts and results.", "R-B2"),
    Requirement("R-F2", "A session taken up without its history is told, never passed over in silence.", "R-F2"),
    Requirement(
        "R-D11", "A question reaches the host or is refused with a reason; no answer is ever made up.", "R-D11"
    ),
    Requirement(
        "R-L1",
        "Usage is that of the turn; each message counts once.",
        "R-L1",
    ),
    Requirement(
        "R-L2",
        "Rate limits are told while the peer tries again, and fail the turn with their reason when it gives up.",
        "R-L2",
    ),
    Requirement(
        "R-L7",
        "A result up to the declared length reaches the model whole.",
        "R-L7",
    ),
    Requirement("R-L5", "Missing and repeated call ids are made up, unique, and said to be so.", "R-L5"),
    Requirement("R-M1", "Idle and absolute limits of a turn hold and are told apart.", "R-M1"),
    Requirement(
        "R-F6",
        "A conversation whose process was closed while idle goes on with the next message.",
        "R-F6",
    ),
    Requirement(
        "R-H2",
        "A peer that does not stop when asked is ended within a bound, and the turn ends cancelled.",
        "R-H2",
    ),
    Requirement(
        "R-J7",
        "A peer sees an environment by allow list; other agents' session variables never reach it.",
        "R-J7",
    ),
    Requirement(
        "R-K1",
        "No secret stands on a command line.",
        "R-K1",
    ),
    Requirement(
        "R-M4",
        "One long-lived process serves a conversation, and its start is timed and told.",
        "R-M4",
    ),
    Requirement(
        "R-B9",
        "Unknown types and lines that are no JSON are skipped, counted and told, and never end a turn.",
        "R-B9",
    ),
    Requirement(
        "R-D9",
        "Every request of a peer gets a valid answer; an unknown one is told.",
        "R-D9",
    ),
    Requirement(
        "R-E1",
        "A turn never runs without the host's tools.",
        "R-E1",
    ),
    Requirement(
        "R-H5",
        "A request that the peer withdraws is withdrawn; a late answer goes nowhere.",
        "R-H5",
    ),
    Requirement(
        "R-D4", "A message while a turn waits is refused with turn_in_progress and never aborts the turn.", "R-D4"
    ),
    Requirement(
        "R-M2", "Every poll says when the peer or the host last did something, so that silence can be seen.", "R-M2"
    ),
    Requirement("R-M6", "A second message in an active turn is turn_in_progress and never queued.", "R-M6"),
    Requirement(
        "R-A4",
        "The time limit we set for tool calls is what the peer is started with.",
        "R-A4",
    ),
    Requirement(
        "R-E5",
        "The user's settings, hooks, plugins and MCP servers are never loaded; the login stays unless a key is used.",
        "R-E5",
    ),
    Requirement(
        "R-J4",
        "Prompts, tools and policies never go through the command line, which stays under 4 KB.",
        "R-J4",
    ),
    Requirement(
        "R-K5",
        "There is no traffic but the model's.",
        "R-K5",
    ),
    Requirement("R-L3", "Ollama's window is always sent, and a prompt it cut is told.", "R-L3"),
    Requirement("R-L4", "Ollama's native endpoint is used.", "R-L4"),
    Requirement(
        "R-G6",
        "A call at the bridge gets the id of the peer's stream, by tool, arguments and order where none is told.",
        "R-G6",
    ),
    Requirement("R-F4", "Each agent is resumed in the way it understands.", "R-F4"),
    Requirement("R-M9", "Peers are spoken to over their structured protocols, pinned and checked.", "R-M9"),
    Requirement("R-M10", "An unsupported major version is refused before a session opens.", "R-M10"),
    Requirement("R-B5", "Any cutting of the bytes gives the same messages.", "R-B5"),
)
