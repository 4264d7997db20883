"""Writes the schemas next to this file."""

from harness.orchestrator.schemas import DIRECTORY, current

for name, text in current().items():
    (DIRECTORY / name).write_text(text, encoding="utf-8")
