"""What of a request's options a connector can honour (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from harness.contract.capabilities import LlmCapabilities, Parallel, StructuredOutput
from harness.contract.options import TurnOptions
from harness.contract.tools import ToolDescriptor
from harness.surfaces.compatible.exchange import ModelRequest
from harness.surfaces.compatible.refusals import unsupported

_HINTS = ("temperature", "effort", "max_output_tokens")
"""Fields that make an answer better or shorter, not another one."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A request's options as they are handed on."""

    turn: TurnOptions
    output_schema_json: str | None
    """The schema, where the connector takes it for a whole conversation only."""
    ignored: tuple[str, ...]
    """In the client's words."""


def fitted(request: ModelRequest, capabilities: LlmCapabilities) -> Fitted:
    """Hints that cannot reach the peer are named; whatever else cannot is refused.

    Raises:
        InvalidArgument: `detail.param` is the field in the client's words.
    """
    asked = request.options.model_dump(exclude_none=True)
    ignored = list(request.ignored)
    schema: str | None = None
    for name in [name for name in asked if name not in capabilities.turn_options and name != "client_key"]:
        word = request.words.get(name, name)
        if name in _HINTS:
            ignored.append(word)
        elif name == "output_schema_json" and capabilities.structured_output == StructuredOutput.CONVERSATION:
            schema = request.options.output_schema_json
        else:
            raise unsupported(word, f"the model '{request.model}' cannot be made to do that")
        del asked[name]
    if not request.parallel_calls and capabilities.parallel == Parallel.ALL:
        ignored.append(request.words.get("parallel_calls", "parallel_calls"))
    return Fitted(TurnOptions.model_validate(asked), schema, tuple(dict.fromkeys(ignored)))


def offered(request: ModelRequest, capabilities: LlmCapabilities) -> list[ToolDescriptor]:
    """The client's tools, so that a peer which is careful about what changes something does not queue their calls."""
    if capabilities.parallel != Parallel.READ_ONLY or not request.parallel_calls:
        return list(request.tools)
    return [
        tool if tool.read_only is not None else tool.model_copy(update={"read_only": True}) for tool in request.tools
    ]
