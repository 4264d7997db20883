"""What every test gets: asyncio as the one anyio backend."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio only: uvicorn and some vendors' SDKs know no other loop."""
    return "asyncio"
