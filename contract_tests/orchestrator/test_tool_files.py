"""Tools from a file: what counts as one, and one clear line for everything that can be wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from contract_tests.requirements import requirement
from harness.errors import ConfigError
from harness.orchestrator.tool_files import load_tools
from harness.orchestrator.tool_registry import ToolRegistry

GOOD = '''
from __future__ import annotations
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from harness import tool

@dataclass
class Spot:
    x: int

def zebra(spot: Spot) -> str:
    """Later in the alphabet."""
    return f"{spot.x}"

@tool(read_only=True)
def ant() -> str:
    return "ant"

again = ant

def _private() -> None: ...
'''


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def written(directory: Path, text: str, name: str = "tools.py") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


@requirement("orchestrator:tool-files:public-functions")
async def test_public_functions_of_the_file_itself_are_its_tools(directory: Path) -> None:
    functions = load_tools(str(written(directory, GOOD)))
    assert [function.__name__ for function in functions] == ["zebra", "ant"]
    descriptors = (await ToolRegistry.of(functions)).descriptors
    assert [(tool.name, tool.read_only) for tool in descriptors] == [("ant", True), ("zebra", None)]


@requirement("orchestrator:tool-files:public-functions")
def test_one_function_is_named_behind_a_colon(directory: Path) -> None:
    path = written(directory, GOOD)
    assert [function.__name__ for function in load_tools(f"{path}:ant")] == ["ant"]
    ant, zebra = load_tools(f"{path}:ant", f"{path}:zebra")
    assert ant.__globals__ is zebra.__globals__


@requirement("orchestrator:tool-files:isolated")
def test_two_files_of_one_name_and_a_neighbour_do_not_disturb_each_other(directory: Path) -> None:
    first, second = directory / "a", directory / "b"
    first.mkdir()
    second.mkdir()
    written(first, "def hello(): return 'first neighbour'\n", "neighbour_of_tools.py")
    one = written(first, "from neighbour_of_tools import hello as _hello\ndef one(): return _hello()\n")
    two = written(second, "def two(): return 2\n")
    # a neighbour never takes the place of an installed package
    written(first, "raise RuntimeError('shadowed')\n", "anyio.py")
    before = list(sys.path)
    loaded = load_tools(str(one), str(two))
    assert [function() for function in loaded] == ["first neighbour", 2]
    assert sys.path[: len(before)] == before
    assert "tools" not in sys.modules


@requirement("orchestrator:tool-files:one-line-errors")
@pytest.mark.parametrize(
    ("text", "spec", "words"),
    [
        ("def broken(:\n", "tools.py", ["line 1", "syntax error"]),
        ("x = 1\nimport not_there_at_all\n", "tools.py", ["line 2", "ModuleNotFoundError", "not_there_at_all"]),
        ("def f(): return 1 / 0\n\nf()\n", "tools.py", ["line 1", "ZeroDivisionError"]),
        ("raise SystemExit(3)\n", "tools.py", ["line 1", "SystemExit"]),
        ("from json import dumps\n", "tools.py", ["no public function"]),
        ("def ant(): ...\n", "tools.py:bee", ["no function 'bee'", "'ant'"]),
        ("def ant(): ...\n", "other.py", ["no tools file"]),
        ("def ant(): ...\n", "tools.txt", ["no tools file"]),
        ("def ant(): ...\n", ".", ["cannot read"]),
        ("x = '\0'\n", "tools.py", ["null bytes"]),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_file(directory: Path, text: str, spec: str, words: list[str]) -> None:
    written(directory, text)
    with pytest.raises(ConfigError) as caught:
        load_tools(str(directory / spec))
    message = caught.value.message
    assert all(word in message for word in words), message
    assert "\n" not in message
    assert caught.value.detail["file"]
