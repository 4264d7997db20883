"""The contract's operations as data, read off its Protocols: what a surface needs that offers them by name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import ConfigDict, create_model

from harness.contract.conversational_llm import ConversationalLLM, ConversationDirectory
from harness.contract.options import ConversationOptions
from harness.contract.value import JsonValue, Value


class _Request(Value):
    """Built when it is first read: most servers are never asked for most operations in this form."""

    model_config = ConfigDict(defer_build=True, use_attribute_docstrings=False)


_STARTS_WORK = frozenset({"begin_conversation", "submit_user_message", "fork_conversation"})


@dataclass(frozen=True, slots=True)
class ContractOperation:
    """One operation: its parameters as one value, and what it gives."""

    name: str
    takes: type[Value]
    gives: JsonValue
    """The annotation of what comes back: a value, a list of values, a text; `None` for nothing."""
    summary: str
    starts_work: bool
    """Refused while a server is stopping."""


def _operations() -> Iterator[ContractOperation]:
    for protocol in (ConversationalLLM, ConversationDirectory):
        for name, method in vars(protocol).items():
            if inspect.iscoroutinefunction(method):
                yield _operation(name, method)


def _operation(name: str, method: Any) -> ContractOperation:
    hints = get_type_hints(method, include_extras=True)
    fields: dict[str, Any] = {
        parameter.name: (hints[parameter.name], _default(parameter, hints[parameter.name]))
        for parameter in inspect.signature(method).parameters.values()
        if parameter.name != "self"
    }
    words = name.split("_")
    takes = create_model("".join(word.capitalize() for word in words) + "Request", __base__=_Request, **fields)
    gives = None if hints["return"] is type(None) else hints["return"]
    told = inspect.getdoc(method) or " ".join(words).capitalize()
    return ContractOperation(name, takes, gives, told.splitlines()[0], name in _STARTS_WORK)


def _default(parameter: inspect.Parameter, annotation: JsonValue) -> Any:
    if annotation is ConversationOptions:  # to ask for nothing is to ask for the defaults
        return ConversationOptions()
    return ... if parameter.default is parameter.empty else parameter.default


CONTRACT_OPERATIONS: tuple[ContractOperation, ...] = tuple(_operations())
