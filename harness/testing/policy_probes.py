"""A fixed table of calls that try to get past a policy. Each names the bypass it tries.

The pure policy must rule as `expected`. A peer that was given the same rules may ask or deny where `ALLOW` is expected,
and must never let a call through where it is not (`Probe.is_kept_by`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.contract.delegation import PolicyMode, RequestPolicy
from harness.policy import PolicyCall, Verdict, rule_of_text

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.ASK, Verdict.DENY


@dataclass(frozen=True)
class Probe:
    """One call under a few rules, in the directory that `lay_out` makes."""

    tries: str
    """The bypass, in words; also the probe's name."""
    tool: str
    arguments: Mapping[str, str]
    expected: Verdict
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mode: PolicyMode = field(default=PolicyMode.DEFAULT)
    may_be_resolved: bool = False
    """A peer that takes `..` out of a path before it asks may allow this: it then works where it looked."""

    @property
    def policy(self) -> RequestPolicy:
        allow, ask, deny = ([rule_of_text(text) for text in texts] for texts in (self.allow, self.ask, self.deny))
        return RequestPolicy(mode=self.mode, allow=allow, ask=ask, deny=deny)

    @property
    def call(self) -> PolicyCall:
        return PolicyCall(self.tool, json.dumps(self.arguments))

    def is_kept_by(self, observed: Verdict) -> bool:
        """Whether a peer that did this is no wider than the policy."""
        return observed != ALLOW or self.expected == ALLOW or self.may_be_resolved


def lay_out(directory: Path) -> Path:
    """Makes the scene of the probes and returns the working directory in it."""
    work, outside = directory / "work", directory / "outside"
    for made in (work / "src" / "deep", work / "src2", work / ".git" / "hooks", outside):
        made.mkdir(parents=True)
    for file in (work / "notes.txt", work / "src" / "a.txt", work / "src2" / "b.txt", outside / "secret.txt"):
        file.write_text("text\n", encoding="utf-8")
    (work / "src" / "way-out").symlink_to(outside)
    (work / "src" / "secret-link.txt").symlink_to(outside / "secret.txt")
    (work / "src" / "back").symlink_to(work / "src" / "deep")
    (work / "shortcut").symlink_to(work / "src" / "deep")
    return work


def _bash(tries: str, command: str, expected: Verdict, *allow: str, deny: tuple[str, ...] = ()) -> Probe:
    return Probe(tries, "Bash", {"command": command}, expected, allow or ("Bash(touch made.txt)",), deny=deny)


def _write(tries: str, path: str, expected: Verdict, *allow: str, mode: PolicyMode = PolicyMode.DEFAULT) -> Probe:
    arguments = {"file_path": path, "content": "probe\n"}
    return Probe(
        tries, "Write", arguments, expected, allow or (() if mode != "default" else ("Write(src/**)",)), mode=mode
    )


_PREFIX = "Bash(touch *)"
_EDITS = PolicyMode.ACCEPT_EDITS

PROBES: tuple[Probe, ...] = (
    # exact commands
    _bash("nothing: the command that is allowed", "touch made.txt", ALLOW),
    _bash("one character more at the end", "touch made.txt2", ASK),
    _bash("a second argument", "touch made.txt other.txt", ASK),
    _bash("another case", "Touch made.txt", ASK),
    _bash("a second command after ;", "touch made.txt; touch other.txt", ASK),
    _bash("a second command after &&", "touch made.txt && touch other.txt", ASK),
    _bash("a second command after ||", "touch made.txt || touch other.txt", ASK),
    _bash("the allowed command twice", "touch made.txt && touch made.txt", ASK),
    _bash("a pipe", "touch made.txt | tee other.txt", ASK),
    _bash("a command in the background", "touch made.txt & touch other.txt", ASK),
    _bash("a line break", "touch made.txt\ntouch other.txt", ASK),
    _bash("output into a file", "touch made.txt > other.txt", ASK),
    _bash("output into nothing", "touch made.txt 2>/dev/null", ASK),
    _bash("an environment prefix", "LD_PRELOAD=./x.so touch made.txt", ASK),
    _bash("a harmless environment prefix", "NODE_ENV=test touch made.txt", ASK),
    _bash("a wrapper that runs its arguments", "timeout 5 touch made.txt", ASK),
    _bash("another wrapper", "nohup touch made.txt", ASK),
    _bash("a shell in between", "bash -c 'touch made.txt'", ASK),
    _bash("quotes inside the word", "to''uch made.txt", ASK),
    _bash("a comment behind it", "touch made.txt # touch other.txt", ASK),
    # a command with a wildcard
    _bash("nothing: an argument for the wildcard", "touch made.txt", ALLOW, _PREFIX),
    _bash("a longer program name", "touchy made.txt", ASK, _PREFIX),
    _bash("substitution in an argument", "touch $(touch other.txt)", ASK, _PREFIX),
    _bash("backquotes in an argument", "touch `touch other.txt`", ASK, _PREFIX),
    _bash("substitution in double quotes", 'touch "$(touch other.txt)"', ASK, _PREFIX),
    _bash("a process substitution", "touch made.txt <(touch other.txt)", ASK, _PREFIX),
    _bash("a variable that decides the rest", "touch ${IFS}made.txt", ASK, _PREFIX),
    _bash("an operator without spaces", "touch made.txt;touch other.txt", ASK, _PREFIX),
    _bash("a here-document", "touch made.txt <<x\ntouch other.txt\nx", ASK, _PREFIX),
    _bash("an operator after a quote that ends early", "touch 'made.txt';touch other.txt", ASK, _PREFIX),
    _bash("a command group", "{ touch made.txt; touch other.txt; }", ASK, _PREFIX),
    # denials
    _bash("a denied command behind an allowed one", "echo x; touch other.txt", DENY, "Bash", deny=("Bash(touch *)",)),
    _bash("a denied command by its full path", "/usr/bin/touch other.txt", DENY, "Bash", deny=("Bash(touch *)",)),
    _bash("a denied command behind a variable", "A=1 touch other.txt", DENY, "Bash", deny=("Bash(touch *)",)),
    _bash("a denied command in quotes", "'touch' other.txt", DENY, "Bash", deny=("Bash(touch *)",)),
    _bash("a denied command in another shell", "sh -c 'touch other.txt'", DENY, "Bash", deny=("Bash(touch *)",)),
    # paths
    _write("nothing: a file in the allowed directory", "src/new.txt", ALLOW),
    _write("a directory whose name begins alike", "src2/new.txt", ASK),
    _write("out of the directory with ..", "src/../new.txt", ASK),
    _write("out of the working directory with ..", "src/../../outside/new.txt", ASK),
    _write("through a link to a directory", "src/way-out/new.txt", ASK),
    _write("through a link to a file", "src/secret-link.txt", ASK),
    _write(".. behind a link", "src/back/../../../outside/new.txt", ASK),
    replace(
        _write(".. behind a link, which two programs read in two ways", "src/way-out/../new.txt", ASK),
        may_be_resolved=True,
    ),
    _write(".. behind a link into the directory", "shortcut/../new.txt", ASK),
    _write("another case", "SRC/new.txt", ASK),
    _write("the home directory", "~/new.txt", ASK),
    # modes
    _write("nothing: an edit that the mode accepts", "src/new.txt", ALLOW, mode=_EDITS),
    _write("accept_edits outside the working directory", "../outside/new.txt", ASK, mode=_EDITS),
    _write("accept_edits through a link", "src/way-out/new.txt", ASK, mode=_EDITS),
    _write("accept_edits on what git executes", ".git/hooks/pre-commit", ASK, mode=_EDITS),
    Probe("accept_edits for a command", "Bash", {"command": "mkdir made"}, ASK, mode=_EDITS),
    Probe("read_only for a command", "Bash", {"command": "touch made.txt"}, DENY, ("Bash",), mode=PolicyMode.READ_ONLY),
    Probe("dont_ask without a rule", "Bash", {"command": "touch made.txt"}, DENY, mode=PolicyMode.DONT_ASK),
    Probe(
        "bypass against a deny rule",
        "Bash",
        {"command": "touch made.txt"},
        DENY,
        deny=("Bash(touch *)",),
        mode=PolicyMode.BYPASS,
    ),
)
