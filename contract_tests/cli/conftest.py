from pathlib import Path

import pytest

from contract_tests.cli.command import TOOLS, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    tmp_path.chmod(0o700)
    (tmp_path / "tools.py").write_text(TOOLS)
    return Shell(tmp_path)
