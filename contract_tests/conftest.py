"""What every test gets: asyncio as the one anyio backend, and property tests that do not look at the clock."""

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow: that is no finding.
settings.register_profile("clockless", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("clockless")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio only: uvicorn and some vendors' SDKs know no other loop."""
    return "asyncio"
