"""What these tests have our connector say is checked against ACP's schema."""

from collections.abc import Generator

import pytest

from contract_tests.connectors.acp.schema_check import CheckedJsonRpc


@pytest.fixture(scope="module", autouse=True)
def checked_wire() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("connectors.acp.protocol.JsonRpc", CheckedJsonRpc)
        yield
