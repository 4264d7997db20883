"""What a commit survives."""

from __future__ import annotations

from typing import Literal, TypeAlias

Durability: TypeAlias = Literal["process", "power"]
"""The death of this process (`synchronous=NORMAL`), or also that of the machine (FULL)."""
