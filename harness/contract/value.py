"""What every value of the contract has in common: frozen, read generously, written strictly."""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

JsonValue: TypeAlias = Any
"""JSON that passes through; the only place where `Any` is meant."""

OPEN = Field(union_mode="left_to_right")
"""Marks `SomeEnum | str`: a known member becomes the enum, an unknown one stays the string it is."""


class Value(BaseModel):
    """A frozen value. Unknown fields are ignored when reading; nulls are omitted when writing."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True, ser_json_inf_nan="null")

    def to_json(self) -> str:
        """The native wire's text: nulls omitted, everything else written, discriminators always."""
        return self.model_dump_json(exclude_none=True)

    def to_dict(self) -> dict[str, JsonValue]:
        """The same as plain JSON values, for codecs that put it into a larger document."""
        return self.model_dump(mode="json", exclude_none=True)


class Label(Value):
    """A pair; the contract has no dictionaries because UJMW clients mangle their keys."""

    name: str
    value: str
