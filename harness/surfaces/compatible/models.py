"""Connectors as models: `<connector>[:variant][/<model>]` (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.surfaces.compatible.refusals import unknown_model
from harness.wire.bodies import ConnectorInfo


@dataclass(frozen=True, slots=True)
class NamedModel:
    """What a client's model name stands for."""

    connector: str
    """With its variant."""
    model: str | None
    """The inner model; null leaves the choice to the connector."""


def model_names(connectors: Sequence[ConnectorInfo]) -> list[str]:
    """What a list of models shows: the connectors of the server."""
    return [info.name for info in connectors]


def named_model(name: str, connectors: Sequence[ConnectorInfo]) -> NamedModel:
    """The connector and the inner model that a name stands for.

    A server that names no connectors takes any. Variants are judged by the connector.

    Raises:
        InvalidArgument: `detail.reason` is `model_not_found`.
    """
    connector, _, model = name.partition("/")
    known = {info.name.partition(":")[0] for info in connectors}
    if not connector or (known and connector.partition(":")[0] not in known):
        raise unknown_model(name, model_names(connectors))
    return NamedModel(connector, model or None)
