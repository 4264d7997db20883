"""What is promised about the conformance suite."""

from contract_tests.requirements.entry import Requirement

CONFORMANCE = (
    Requirement("conformance:text", "An answer streams, is numbered without a gap, and ends once.", "contract 3"),
    Requirement("conformance:call", "A call and its result pass between model and host as they are.", "contract 4"),
    Requirement("conformance:call:parallel", "Calls of one round wait together as far as the peer can.", "contract 4"),
    Requirement("conformance:call:slow", "A call stays open as long as the host needs.", "R-A5"),
    Requirement("conformance:stop-reasons", "Every end of a turn has its neutral stop reason.", "contract 3"),
    Requirement("conformance:approval", "What a peer asks before it acts is decided by the host.", "R-D10, R-D12"),
    Requirement("conformance:delegation", "What is delegated the peer does itself, the rest arrives.", "contract 1"),
    Requirement("conformance:provider-errors", "A provider's failure is told by its reason.", "contract 7"),
    Requirement("conformance:history", "A history given at the start is read by the model.", "contract 2"),
    Requirement("conformance:exact", "Values that are easily spoilt pass both ways unchanged.", "contract 4"),
    Requirement("conformance:turn-options", "An option of one turn holds for this turn only.", "contract 2"),
    Requirement("conformance:kit", "A foreign connector is tried with one fixture.", "R-M9"),
    Requirement("conformance:matrix", "The published matrix says what the scenarios find.", "R-M9"),
    Requirement("conformance:words", "Words that a peer puts around results hide no defect, and are told.", "R-M9"),
    Requirement("conformance:replay", "A recording gives the trace it was made with, with no CLI here.", "R-M9"),
    Requirement("conformance:replay:strict", "A replay notices every field of ours that changed.", "R-M9"),
    Requirement("conformance:replay:cut", "Recorded bytes in other pieces are read alike.", "R-M9"),
    Requirement("conformance:framing", "Recorded messages end as they ended in the pipe.", "ours"),
    Requirement("conformance:record:same", "Two recordings of one scenario differ where the peer does.", "R-M9"),
    Requirement("conformance:drift", "What a peer does otherwise than recorded is told in words.", "R-M9"),
    Requirement("verify:command", "`verify` plays scenarios live or replayed and tells each verdict.", "R-M9"),
    Requirement("conformance:mutants", "What a connector spoils in one place is noticed by the suite.", "R-M9"),
    Requirement("canary:falls", "A peer that does not ask, block or stay denied fells its canary.", "R-D7"),
    Requirement("canary:verdict", "A canary's verdict holds for one binary, route and system.", "R-D7"),
    Requirement("canary:agents", "Every agent with approvals has a canary, and what starts it is found.", "R-D7"),
    Requirement("canary:run", "A run or chat with internal tools does not begin after a canary that fell.", "R-D7"),
    Requirement("canary:command", "`verify --canary` tries the installed program and keeps the verdict.", "R-D7"),
    Requirement(
        "canary:serve", "After a canary that fell only conversations without internal tools are served.", "R-D7"
    ),
    Requirement(
        "examples:web-chat",
        "The page of examples/web_chat streams, runs its own tool and asks with buttons, in a real browser.",
        "ours",
    ),
    Requirement(
        "examples:run",
        "Every example runs with the connector `fake` and no key, and the small ones stay small.",
        "ours",
    ),
    Requirement("peers:pinned", "The agents that live tests talk to are pinned names and versions.", "ours"),
)
