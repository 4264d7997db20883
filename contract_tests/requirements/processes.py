"""What is promised about processes."""

from contract_tests.requirements.entry import Requirement

PROCESSES = (
    Requirement("process:lines:any-chunking", "Any chunking of a byte stream gives the same lines.", "R-B5"),
    Requirement(
        "process:lines:byte-exact",
        "Only 0x0A ends a line; what is between passes byte by byte, whatever separators and characters it holds.",
        "R-J1, R-J2, R-J3",
    ),
    Requirement(
        "process:lines:limit",
        "A line of 50 MiB passes in linear time; the limit is 64 MiB, can be set, and is a clear error.",
        "R-B1, R-B4",
    ),
    Requirement("process:lines:foreign-lines-pass", "A line that is no JSON is handed on like any other.", "R-B9"),
    Requirement("process:stderr:drained", "10 MB of stderr before an answer block nobody; their end is kept.", "R-B10"),
    Requirement("process:output:flood", "A peer that floods its output leaves others their turn.", "ours"),
    Requirement(
        "process:environment:allow-list",
        "A CLI sees what is on the allow list and what its connector names, nothing of another agent's session.",
        "R-J7",
    ),
    Requirement(
        "process:environment:no-proxy-for-loopback",
        "No proxy stands between a CLI and 127.0.0.1, in either spelling.",
        "ours",
    ),
    Requirement(
        "process:start:clear-errors",
        "A program that cannot be started is named in one line with the remedy, by its real cause.",
        "R-J4, R-J5",
    ),
    Requirement(
        "process:lost:says-why",
        "A peer that goes by itself is lost with its exit code, last words, and how much of a line it left.",
        "R-B3",
    ),
    Requirement(
        "process:lost:grandchild-holds-pipes",
        "The end of a peer is seen at once though a grandchild holds its pipes open.",
        "R-M1",
    ),
    Requirement(
        "process:end:whole-tree",
        "Everything a peer started ends with it: other sessions, empty environments and lost parents included.",
        "R-C2",
    ),
    Requirement("process:end:wrapper-chain", "A wrapper, the CLI behind it and the CLI's server all go.", "R-C3"),
    Requirement("process:end:bounded", "SIGTERM, grace, SIGKILL: awaited to the end, and bounded.", "R-C4"),
    Requirement(
        "process:end:sigterm-before-eof",
        "A peer's input stays open until it is gone, also when its owner is killed: it hears SIGTERM first.",
        "R-A7",
    ),
    Requirement(
        "process:end:cancelled-anywhere",
        "Cancelled during start, turn or end, even twice, a peer leaves no process, task or descriptor.",
        "R-C5",
    ),
    Requirement("process:end:nothing-left", "Opened and closed again and again, peers leave nothing behind.", "R-C5"),
    Requirement("process:reaper:kill-9", "`kill -9` of the owner leaves no process after five seconds.", "R-C1, R-C7"),
    Requirement(
        "process:reaper:shared",
        "The peers of an event loop share one reaper; it leaves with the last and is replaced when killed.",
        "ours",
    ),
    Requirement("process:reaper:idle", "The reaper sleeps until something happens.", "R-C7"),
    Requirement(
        "process:reaper:stale",
        "Recorded marks are enough to end what a dead process left; a number alone ends nobody.",
        "R-C6",
    ),
    Requirement("process:reaper:light", "The reaper imports a small part of the standard library.", "R-E2"),
)
