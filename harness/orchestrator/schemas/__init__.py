"""The JSON Schemas of `--output json` and `jsonl`, checked in beside this file and kept in step by a test.

`python -m harness.orchestrator.schemas` writes them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from harness.orchestrator.completion import Completion
from harness.orchestrator.lines import Line

DIRECTORY = Path(__file__).parent


def current() -> dict[str, str]:
    """File name -> text, as the models are now."""
    models: dict[str, Any] = {"completion.json": Completion, "line.json": Line}
    return {name: _text(TypeAdapter(model), name) for name, model in models.items()}


def _text(adapter: TypeAdapter[Any], name: str) -> str:
    described = adapter.json_schema(mode="serialization")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"harness/{name}", **described}
    return json.dumps(schema, indent=2) + "\n"
