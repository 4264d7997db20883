"""Which versions of Codex are known. Pure."""

from __future__ import annotations

from connectors._programs import Version

MINIMUM: Version = (0, 166, 0)
TESTED: frozenset[Version] = frozenset({(0, 171, 0)})

HOW_TO_LOG_IN = "type: codex login, or set OPENAI_API_KEY"
HOW_TO_INSTALL = "type: npm install -g @openai/codex"
