"""Names of other systems as tool names of ours (pure)."""

from __future__ import annotations

import re

MAX_NAME_CHARS = 64


def tool_name(name: str, prefix: str = "") -> str:
    """A character that no tool name may have becomes `_`; what is too long is cut. Twins are for the caller to find."""
    return (prefix + re.sub(r"[^a-zA-Z0-9_-]", "_", name))[:MAX_NAME_CHARS]
