"""What every test gets: asyncio as the one anyio backend, and property tests that do not look at the clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow: that is no finding.
settings.register_profile("clockless", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("clockless")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio only: uvicorn and some vendors' SDKs know no other loop."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def runtime_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Servers of tests, and of the processes they start, leave their records here and never in the user's directory.

    They keep no journal, unless a test says where.
    """
    directory = tmp_path_factory.mktemp("runtime")
    directory.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(directory))
        patch.setenv("XDG_STATE_HOME", str(directory))
        patch.setenv("HARNESS_STORE", "memory")
        yield directory
