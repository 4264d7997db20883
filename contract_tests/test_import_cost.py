"""Nobody pays for what they do not use. What is loaded is asserted, how long it takes is measured elsewhere."""

import json
import subprocess
import sys
from pathlib import Path

from contract_tests.requirements import requirement

VENDOR_SDKS = {"acp", "claude_agent_sdk", "copilot", "mcp", "ollama", "openai"}

RUN_COMMAND = """
import sys
sys.argv = ["harness", *{arguments!r}]
from harness.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""

REPORT = """
import json, sys
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr)
"""


def packages_loaded_by(program: str, directory: Path) -> set[str]:
    """Run a program in a fresh interpreter and return the top-level names it has loaded at its end."""
    finished = subprocess.run(
        [sys.executable, "-I", "-c", program + REPORT],
        cwd=directory,
        env={"PATH": "", "HOME": str(directory)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return set(json.loads(finished.stderr.splitlines()[-1]))


@requirement("import:cost:harness")
def test_importing_harness_loads_no_pydantic(tmp_path: Path) -> None:
    loaded = packages_loaded_by("import harness", tmp_path)
    assert "harness" in loaded
    assert (
        loaded & {"anyio", "httpx2", "pydantic", "pydantic_core", "rich", "starlette", "typer", *VENDOR_SDKS} == set()
    )


@requirement("import:cost:help")
def test_help_loads_neither_rich_nor_pydantic_nor_a_vendors_sdk(tmp_path: Path) -> None:
    loaded = packages_loaded_by(RUN_COMMAND.format(arguments=["--help"]), tmp_path)
    assert "typer" in loaded
    assert (
        loaded & {"connectors", "httpx2", "pydantic", "pydantic_core", "rich", "starlette", "uvicorn", *VENDOR_SDKS}
        == set()
    )
