"""What is promised about harnesses that stand on each other."""

from contract_tests.requirements.entry import Requirement

STACKING = (
    Requirement("stacking:calls", "Calls keep ids, order and text through three harnesses.", "issue 9"),
    Requirement("stacking:asks", "Approvals and questions arrive with their own options, however deep.", "issue 9"),
    Requirement("stacking:cancel", "A cancel at the top interrupts the peer at the bottom, once.", "issue 9"),
    Requirement("stacking:errors", "An error at the bottom has its code and detail at the top.", "issue 9"),
    Requirement("stacking:capabilities", "A harness on another one can what that one can.", "issue 9"),
    Requirement("stacking:stream", "The stream of the bottom is that of the top, item for item.", "issue 9"),
    Requirement("stacking:one-session", "One session at every level is enough: nothing deadlocks.", "issue 9"),
    Requirement("stacking:deadlines", "The host's own deadline decides; those below come later.", "issue 9"),
    Requirement("stacking:withdrawn", "What the bottom takes back is withdrawn at the top.", "issue 9"),
    Requirement("stacking:turns", "Equal messages and equal client keys of two callers stay apart.", "issue 9"),
    Requirement("stacking:restricted", "Who names no programs does not spend our token either.", "design 10"),
    Requirement("stacking:options", "The connector says which option is missing, and never shows a token.", "issue 9"),
    Requirement(
        "stacking:resume", "After a restart the conversation over there goes on, or its loss is told.", "issue 9"
    ),
    Requirement("stacking:delegation", "Tool sources and policies are handed down to who can take them.", "issue 9"),
    Requirement(
        "stacking:loop", "Harnesses that stand on each other in a circle, or too high, are refused.", "issue 9"
    ),
    Requirement("stacking:killed", "When a harness in the middle is killed, nothing hangs above or below.", "issue 9"),
    Requirement("stacking:claude", "The real Claude CLI at the bottom calls the tools of the top.", "issue 9"),
)
