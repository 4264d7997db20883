"""What is promised about the journal and its store."""

from contract_tests.requirements.entry import Requirement

STORE = (
    Requirement(
        "store:client-key",
        "One owner has one conversation per client key, whichever process begins it.",
        "contract 1",
    ),
    Requirement("store:owners", "What another owner has is not found.", "contract 1"),
    Requirement(
        "store:fence",
        "Only the last who claimed a conversation writes to it; one that a live process holds is refused and the "
        "process named.",
        "design 6",
    ),
    Requirement("store:append:all-or-nothing", "An append is kept as a whole or not at all.", "design 6"),
    Requirement("store:round-trip", "Every kind of entry comes back value for value.", "design 6"),
    Requirement("store:blobs", "A large string stands in the journal once and goes with its last user.", "ours"),
    Requirement("store:lists", "Lists, open requests, items and sizes are answered by the store.", "ours"),
    Requirement(
        "store:abandoned", "What a dead process held, or gave back in the middle of a turn, is found.", "design 6"
    ),
    Requirement("store:delete", "A deleted conversation is gone and its client key is free.", "contract 1"),
    Requirement("store:loop", "A large append does not hold up the loop.", "design 6"),
    Requirement("store:not-open", "A journal that is not open says so.", "ours"),
    Requirement("store:private", "Only the user can read the journal.", "design 10"),
    Requirement(
        "store:schema", "A journal of a newer version is refused and left alone; others are brought up.", "ours"
    ),
    Requirement("store:broken", "A file that cannot be a journal is refused by name.", "ours"),
    Requirement("store:full", "A full disk is a clear error, and what was there before stays whole.", "design 6"),
    Requirement("store:locked", "A locked journal is waited for, and an error when it stays locked.", "design 6"),
    Requirement("store:several-processes", "Several processes write to one journal.", "design 6"),
    Requirement(
        "journal:failure:ends-turn",
        "A journal that cannot be written ends the turn, interrupts the peer and loses no accepted answer; when "
        "it can, the conversation goes on.",
        "design 6",
    ),
    Requirement(
        "journal:restart:exact",
        "After a crash open requests stay open under their ids, the turn goes on when they are answered, and what "
        "the model was saying is said again; leaving the harness keeps such a turn, too.",
        "contract 6",
    ),
    Requirement("journal:restart:polls", "A poll never goes backwards, also over a restart.", "contract 3"),
    Requirement(
        "journal:restart:overdue",
        "A request whose deadline passed while nobody was there is closed as a denial or error before anything is "
        "shown.",
        "contract 2",
    ),
    Requirement(
        "journal:restart:client-key",
        "A caller that was killed finds its conversation and its turn by their client keys.",
        "contract 1",
    ),
    Requirement(
        "journal:restart:run-to-completion", "`run_to_completion` picks up a turn that runs already.", "design 9"
    ),
    Requirement("journal:restart:ids", "A request id is given once, also over restarts.", "contract 4"),
    Requirement("journal:restart:usage", "Figures and structured output are those of before.", "contract 3"),
    Requirement("journal:restart:old-turns", "Every turn of a conversation can be read, however old.", "ours"),
    Requirement(
        "journal:restart:continued",
        "After a crash the turn of a dead peer is lost, what was open is told with what is known, and the next "
        "message goes on in the peer's own session.",
        "contract 6",
    ),
    Requirement(
        "journal:answers:not-delivered",
        "An answer that was accepted and did not reach the peer, or perhaps not, is in the detail of `peer_lost`.",
        "contract 6",
    ),
    Requirement(
        "journal:restart:on-peer-lost",
        "With `on_peer_lost: continue` the harness sends the message that goes on, answers quoted as data, once.",
        "contract 6",
    ),
    Requirement(
        "journal:restart:none",
        "A peer that cannot resume starts afresh, and the turn says once that the history is lost.",
        "contract 6",
    ),
    Requirement("journal:waiters:fail-at-once", "A process that exits fails all who wait for it at once.", "ours"),
    Requirement(
        "journal:several-processes",
        "Several processes share a journal: what a live one has open is not touched and names it; what is idle or "
        "left by a dead one goes to whoever asks.",
        "design 6",
    ),
    Requirement("journal:idle", "A message that comes while its conversation is put to rest goes on with it.", "ours"),
    Requirement(
        "journal:crash-points",
        "A process killed at any of its writes breaks no promise: no accepted answer is lost, no call is delivered "
        "twice, no request id is used again, no poll goes backwards.",
        "design 6",
    ),
    Requirement(
        "journal:crash-points:finds-planted-faults",
        "A build that promises before it writes is found out by the same search.",
        "ours",
    ),
    Requirement(
        "journal:writer:order",
        "What is noted is shown, accepted and delivered after its commit, in order.",
        "design 6",
    ),
    Requirement(
        "journal:writer:failure",
        "Whoever waits for a batch that failed is told so, and nothing of it is lost when the medium is back.",
        "design 6",
    ),
    Requirement(
        "journal:writer:message-is-durable-first",
        "The peer hears of a message when its turn is durable.",
        "ours",
    ),
    Requirement(
        "journal:python-store", "In Python conversations are kept by a `store`, and not without one.", "design 6"
    ),
)
