"""The information document of a UJMW service, from which clients read its version and its OpenAPI document (pure)."""

from __future__ import annotations

import json

from harness.surfaces.ujmw.place import DOCUMENT, OPERATION_NAMES, Place
from harness.surfaces.ujmw.settings import UjmwSettings

CONTRACT_VERSION = "1.0.0"
"""Of the operations and values; the major number changes where a client breaks."""


def information(place: Place, server_url: str, settings: UjmwSettings) -> bytes:
    service = server_url.rstrip("/") + place.base
    document = {
        "ServiceEndpoints": [
            {
                "EndpointQualifyingName": f"UJMW:{settings.qualified_contract}/{CONTRACT_VERSION}",
                "ApiGroupName": "harness",
                "UJMW.KnownMethods": list(OPERATION_NAMES),
            }
        ],
        "EndpointIndexUrl": service,
        "Swagger.DefinitionUrls": [f"{service}/{DOCUMENT}"],
        "Swagger.UiEntryUrl": None,
    }
    return json.dumps(document, indent=2).encode("ascii")
