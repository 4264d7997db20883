"""What the connector `local` does around its model: pure parts, and what it says when packages are missing."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from connectors.local import LocalConfig, LocalConnector
from connectors.local.choice import likely_tools
from connectors.local.protocol import bounded
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions, ToolDescriptor
from harness.errors import ConfigError, ConnectorUnavailable

POUR = ToolDescriptor(
    name="pour_drink",
    description="Pours a drink into a glass",
    input_schema_json='{"type":"object","properties":{"beverage":{"type":"string"}}}',
)
MOW = ToolDescriptor(name="mowLawn", description="Mows the grass")


@requirement("local:choice")
@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("Please pour me a drink", ["pour_drink"]),
        ("Could the lawn be mowed?", ["mowLawn"]),
        ("Which beverages are there?", ["pour_drink"]),
        ("Who are you?", []),
        ("", []),
    ],
)
def test_tools_that_share_words_with_the_request_are_likely(request_: str, expected: list[str]) -> None:
    assert likely_tools(request_, [POUR, MOW]) == expected


@requirement("local:choice")
def test_strings_and_lists_without_an_end_get_one_and_others_keep_theirs() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "string", "enum": ["x"]},
            "d": {"type": "string", "pattern": r"^\d{4}$"},
            "c": {"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 9},
        },
    }
    limited = bounded(schema)["properties"]
    assert limited["a"] == {"type": "string", "maxLength": 120}
    assert limited["d"] == {"type": "string", "pattern": "^[0-9]{4}$"}
    assert limited["b"] == {"type": "string", "enum": ["x"]}
    assert limited["c"] == {"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 9, "maxItems": 9}
    assert json.dumps(schema).count("120") == 0


@requirement("local:missing")
@pytest.mark.skipif(find_spec("xllamacpp") is not None, reason="the embedded model is installed here")
async def test_without_its_packages_it_says_what_to_type() -> None:
    with pytest.raises(ConnectorUnavailable, match="pip install"):
        await LocalConnector().get_capabilities(ConversationOptions(connector="local"))


@requirement("local:missing")
def test_a_model_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.local.config.find_spec", lambda name: object())
    with pytest.raises(ConfigError, match=r"no model file 'gone\.gguf'"):
        LocalConfig(gguf=Path("gone.gguf")).model_file()
