"""What `harness policy` does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from harness.cli.configuration import read_toml, toml_of
from harness.cli.policies import PROJECT_FILE
from harness.cli.terminal import printable
from harness.cli.trust import trust
from harness.contract.delegation import RequestPolicy
from harness.contract.value import JsonValue
from harness.errors import ConfigError, InvalidArgument
from harness.place import place_here
from harness.policy import Policy, Verdict, call_of_text, decide, policy_of, rule_text

_SAYS = {Verdict.ALLOW: "allowed", Verdict.DENY: "denied", Verdict.ASK: "somebody is asked"}
_LISTS = ("deny", "ask", "allow")
_NEXT_RULE = re.compile(r";\s*(?=(?:deny|ask|allow|mode|questions) )")


def explain(
    rules: str,
    call: str,
    *,
    cwd: Path,
    kind: str,
    connector: str | None,
    read_only: bool | None,
    as_json: bool,
) -> str:
    """The ruling on the call with its reason.

    Raises:
        InvalidArgument: rules or a call that cannot be read.
        ConfigError: a policy file that cannot be used.
    """
    looked_at = call_of_text(call, kind=kind)
    looked_at = replace(
        looked_at,
        connector=looked_at.connector or connector,
        read_only=looked_at.read_only if read_only is None else read_only,
    )
    ruling = decide(Policy(_rules(rules)), looked_at, place_here(str(cwd)))
    if as_json:
        rule = None if ruling.rule is None else rule_text(ruling.rule)
        told: Mapping[str, JsonValue] = {
            "verdict": ruling.verdict,
            "by": ruling.by,
            "reason": ruling.reason,
            "rule": rule,
        }
        return json.dumps({name: value for name, value in told.items() if value is not None})
    return printable(f"{_SAYS[ruling.verdict]}: {ruling.reason}")


def trust_project(directory: Path) -> Iterator[str]:
    """Trusts the policy file of a project as it is now, and tells what that lets through.

    Raises:
        ConfigError: there is none, or it cannot be used.
    """
    path = directory / PROJECT_FILE
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}", file=str(path)) from error
    policy = policy_of(toml_of(data, path), str(path))
    trust(directory, data)
    yield printable(f"trusted: {path}, until it changes")
    yield f"mode: {policy.mode}"
    for rule in policy.allow:
        yield printable(f"allow: {rule_text(rule)}")


def _rules(text: str) -> RequestPolicy:
    """A file, or rules typed on the spot: `deny Bash(rm *); allow Bash`, a mode being `mode dont_ask`."""
    if text.endswith(".toml") or Path(text).is_file():
        return policy_of(read_toml(Path(text)), text)
    table: dict[str, JsonValue] = {name: [] for name in _LISTS}
    for part in (piece.strip() for piece in _NEXT_RULE.split(text)):
        word, _, rest = part.partition(" ")
        if word in _LISTS and rest:
            table[word].append(rest.strip())
        elif word in ("mode", "questions") and rest:
            table[word] = rest.strip()
        elif part:
            raise InvalidArgument(f"'{part}' is no rule: begin with deny, ask, allow or mode; or name a .toml file")
    return policy_of(table, "rules")
