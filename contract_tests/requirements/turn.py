"""What is promised about the turn, the conversation and the contract."""

from contract_tests.requirements.entry import Requirement

TURN = (
    Requirement("limits:budget", "A turn without budget ends with 'budget', whoever keeps the limit.", "contract 2"),
    Requirement("limits:rounds", "A turn over its rounds ends with 'max_turns', whoever keeps it.", "contract 2"),
    Requirement("limits:near", "Four fifths of a limit are told, once.", "contract 2"),
    Requirement("limits:denials", "A call that is refused or fails again and again ends the turn.", "R-D2, R-D10"),
    Requirement("limits:prices", "The price table stands in where the provider tells no cost.", "contract 2"),
    Requirement(
        "contract:schema:checked-in", "The JSON Schema that the wheel holds is that of the models.", "contract"
    ),
    Requirement(
        "contract:schema:no-dictionaries",
        "No value has a dictionary: JSON travels as text, pairs as a list of name and value.",
        "contract",
    ),
    Requirement(
        "contract:schema:unions", "Variants of a union never reuse a field name with another type.", "contract"
    ),
    Requirement(
        "contract:schema:describes-the-wire",
        "What is written fits the schema, and what is broken does not.",
        "contract",
    ),
    Requirement("contract:values:round-trip", "Every value reads back as itself what it wrote.", "contract"),
    Requirement(
        "contract:writing:strict",
        "Nulls are omitted, everything else is written, discriminators always.",
        "contract",
    ),
    Requirement(
        "contract:reading:generous",
        "Unknown fields are ignored, unknown items and blocks keep their raw fields, an unknown enum member stays "
        "the string it is.",
        "contract",
    ),
    Requirement("contract:json:passes-through", "Texts and JSON texts pass through letter by letter.", "contract 4"),
    Requirement(
        "contract:errors:one-code", "Every error has one code, the same in Python and on a wire.", "contract 7"
    ),
    Requirement(
        "turn:stream:numbered-and-complete",
        "Numbers start at 1 and grow by 1; polls with any numbers, repeated or lost, give exactly the same stream, "
        "and what a poll says at N follows from items 1..N.",
        "contract 3",
    ),
    Requirement(
        "turn:requests:one-outcome-each",
        "Every opened request gets exactly one outcome and at most one delivery; nothing is pending in a finished "
        "turn.",
        "contract 4",
    ),
    Requirement(
        "turn:answers:second-answer",
        "The same answer again is a no-op, another one is already_answered, one that crossed a withdrawal is "
        "dropped; none disturbs the turn.",
        "contract 4",
    ),
    Requirement(
        "turn:status:awaiting-host-iff-open",
        "A turn awaits the host if and only if a request is open.",
        "contract 3",
    ),
    Requirement("turn:end:never-changes", "A finished turn never changes; late events are fenced off.", "contract 5"),
    Requirement(
        "turn:cancel:order",
        "A cancel resolves every open request and asks for one interrupt, and nothing is delivered after it.",
        "contract 5",
    ),
    Requirement(
        "turn:table:every-cell-reached", "The tests reach every transition that the table of a turn has.", "ours"
    ),
    Requirement(
        "turn:deltas:merged-per-read",
        "Adjacent deltas of one item that arrive in one read are one item of the stream, others never.",
        "contract 3",
    ),
    Requirement(
        "turn:requests:order-of-the-model", "Open requests are listed in the order the model asked.", "contract 4"
    ),
    Requirement(
        "turn:expiry:one-error-result",
        "An expired request gets exactly one synthetic answer: an error result, a denial or a decline, never a pass.",
        "contract 2",
    ),
    Requirement(
        "turn:giving-up:interrupts-once",
        "When we give up on a peer the turn ends at once and the peer is interrupted exactly once.",
        "contract 5",
    ),
    Requirement(
        "turn:window:only-deltas-leave",
        "Of a long turn only the oldest deltas leave the memory, and `first_sequence_no` says from where on the "
        "stream is complete.",
        "contract 3",
    ),
    Requirement(
        "turn:size:too-large-ends-it",
        "A turn over `max_turn_bytes` ends failed with turn_too_large, wherever the limit strikes.",
        "ours",
    ),
    Requirement(
        "turn:answers:options",
        "An approval is answered by an option that was offered, named by its id or by a kind that one option has.",
        "contract 4",
    ),
    Requirement("turn:answers:questions", "A question takes the answers it offers and may be declined.", "contract 4"),
    Requirement(
        "turn:search:finds-planted-faults",
        "The search over interleavings finds each of six planted faults.",
        "ours",
    ),
    Requirement(
        "llm:turn:tool-calls",
        "A turn asks for tools by their ids and arguments, in the model's order, and goes on with the results.",
        "contract 4",
    ),
    Requirement(
        "llm:turn:one-at-a-time",
        "A second message while a turn runs is refused, never queued; the same one again is the same turn.",
        "R-M6",
    ),
    Requirement(
        "llm:poll:same-stream",
        "However polls are cut, joined they are the same stream, and no poll brings more than was asked for.",
        "contract 3",
    ),
    Requirement(
        "llm:poll:waits",
        "A poll waits until something is newer or its time is over; a finished turn keeps nobody waiting.",
        "contract 1",
    ),
    Requirement(
        "llm:answers:judged-alone",
        "Valid answers are applied beside invalid ones, and the error lists exactly those that were rejected.",
        "contract 4",
    ),
    Requirement(
        "llm:answers:never-open-again",
        "Once an answer was accepted, no later poll of that caller shows its request open.",
        "contract 4",
    ),
    Requirement(
        "llm:cancel",
        "A cancel resolves what is open, interrupts once, may be repeated, and leaves the conversation usable.",
        "contract 5",
    ),
    Requirement("llm:client-key", "A client key makes a repeated call the same one.", "contract 1"),
    Requirement("llm:errors:same-classes", "An error has the same class wherever it comes from.", "contract 7"),
    Requirement("llm:directory", "The directory tells conversations, what waits, and exports.", "contract 1"),
    Requirement("llm:end", "The end of a conversation cancels its turn and may be repeated.", "contract 1"),
    Requirement("llm:capabilities", "Capabilities are true for the options given.", "contract 1"),
    Requirement(
        "conversation:fork",
        "A fork has the other's options, delegation and what its connector remembers, and goes its own way.",
        "contract 1",
    ),
    Requirement(
        "conversation:any-host-any-peer",
        "Whatever host and peer do, in whatever order, every request gets one outcome, nothing is pending "
        "after the end, nobody hangs, and the next turn is clean.",
        "ours",
    ),
    Requirement(
        "conversation:ids:repeated",
        "A call id that a peer repeats becomes a request id with a suffix; the call id itself never changes.",
        "contract 4",
    ),
    Requirement(
        "conversation:answers:rejected-list",
        "Each answer is judged alone; one error lists the rejected ones and all others were accepted.",
        "contract 4",
    ),
    Requirement(
        "conversation:session:on-demand",
        "The peer starts with the first message, or at begin with prestart.",
        "contract 1",
    ),
    Requirement(
        "conversation:session:idle-close",
        "An idle conversation is closed after its time to live, one that waits for its host never.",
        "contract 1",
    ),
    Requirement(
        "conversation:session:dead-beside-living",
        "A dead peer or a bug in one conversation never reaches another.",
        "design 4",
    ),
    Requirement(
        "conversation:session:gone",
        "A turn that finds its peer dead before the message was sent runs in a new session, once.",
        "design 4",
    ),
    Requirement("conversation:owners", "A conversation of another owner is unknown to every operation.", "contract 1"),
    Requirement(
        "conversation:cancel:order",
        "On cancel the peer gets one interrupt and nothing before it; the turn ends cancelled whatever the peer "
        "calls its end, and what it asks after it is never opened.",
        "contract 5",
    ),
    Requirement(
        "conversation:cancel:before-start",
        "A cancel before the peer was started ends the turn at once.",
        "contract 5",
    ),
    Requirement(
        "conversation:cancel:deadline",
        "A peer that does not stop is left after a bound, and the conversation goes on in a new session.",
        "contract 5",
    ),
    Requirement(
        "conversation:deadline:request",
        "A request has its deadline from the moment it is opened; when it passes the peer gets an error or a refusal.",
        "contract 2",
    ),
    Requirement(
        "conversation:deadline:turn",
        "The absolute and the idle limit of a turn are told apart; waiting for the host is not silence.",
        "contract 2",
    ),
    Requirement(
        "conversation:deadline:next-turn-waits",
        "After a timeout the next turn starts when the peer has stopped, and late events never reach it.",
        "design 4",
    ),
    Requirement("turn:end:error-has-a-name", "A turn that ends by an error has failed with a code.", "contract 3"),
)
