"""Secrets are taken out by value, wherever they turn up: a name says nothing about what a message quotes (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from harness.contract.output import Notice, Raw
from harness.contract.value import JsonValue
from harness.errors import HarnessError
from harness.turn.events import OutputProduced, TurnEvent, TurnFailed

MIN_CHARS = 8
"""A shorter value is an ordinary word too often, and no good secret."""
REMOVED = "[secret]"
_SECRET_NAME = re.compile(r"(?i)(?:key|token|secret|passw(?:or)?d|passphrase|credentials?|authorization|cookie)s?$")
_SCHEME = re.compile(r"(?i)^(?:bearer|basic|token)\s+")


class Redactor:
    """Knows the secrets of one conversation, or of one process."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {form for secret in secrets for form in _forms(secret) if len(form) >= MIN_CHARS}
        # the longest first, or a secret that contains another would leave its rest behind
        self._pattern = re.compile("|".join(re.escape(one) for one in sorted(known, key=len, reverse=True)))
        self._knows_any = bool(known)

    def text(self, text: str) -> str:
        return self._pattern.sub(REMOVED, text) if self._knows_any else text

    def error(self, error: HarnessError) -> HarnessError:
        """The same error, its message and detail without secrets."""
        if self._knows_any:
            error.message = self.text(error.message)
            error.args = (error.message,)
            error.detail = {name: self._value(value) for name, value in error.detail.items()}
        return error

    def event(self, event: TurnEvent) -> TurnEvent:
        """What a turn shows of its peer beside the model's own words: errors, notices and raw lines."""
        if not self._knows_any:
            return event
        if isinstance(event, TurnFailed):
            return TurnFailed(self.error(event.error))
        if isinstance(event, OutputProduced) and event.item in (Notice, Raw):
            return replace(event, fields={**event.fields, "text": self.text(str(event.fields["text"]))})
        return event

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(member) for member in cast(list[object], value)]
        if isinstance(value, dict):
            return {name: self._value(member) for name, member in cast(dict[str, object], value).items()}
        return value


def secrets_of_environment(environment: Mapping[str, str]) -> Iterator[str]:
    """The values of variables that are named like secrets."""
    for name, value in environment.items():
        if _SECRET_NAME.search(name):
            yield value


def secrets_of_options(connector_options_json: str | None) -> Iterator[str]:
    """The values in connector options, at any depth, that are named like secrets."""
    try:
        options: JsonValue = json.loads(connector_options_json or "null")
    except ValueError:
        return
    yield from _named(options, is_secret=False)


def _named(value: JsonValue, *, is_secret: bool) -> Iterator[str]:
    if isinstance(value, str) and is_secret:
        yield value
    elif isinstance(value, list):
        for member in cast(list[JsonValue], value):
            yield from _named(member, is_secret=is_secret)
    elif isinstance(value, dict):
        members = cast(dict[str, JsonValue], value)
        is_pair = isinstance(members.get("name"), str) and _SECRET_NAME.search(members["name"]) is not None
        for name, member in members.items():
            is_named = _SECRET_NAME.search(name) is not None or (is_pair and name == "value")
            yield from _named(member, is_secret=is_secret or is_named)


def _forms(secret: str) -> Iterator[str]:
    """As it is, without its scheme, and as JSON writes it."""
    bare = _SCHEME.sub("", secret.strip())
    for form in (secret.strip(), bare):
        yield form
        yield json.dumps(form)[1:-1]
