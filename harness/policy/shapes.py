"""What the arguments of well-known tools are: commands, paths or URLs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Sort(StrEnum):
    COMMAND = "command"
    PATH = "path"
    URL = "url"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Shape:
    """The argument that a short rule such as `Bash(git diff *)` is about; `default` stands in where it is missing."""

    argument: str
    sort: Sort
    is_edit: bool = False
    default: str | None = None


_EDIT = Shape("file_path", Sort.PATH, is_edit=True)
_SHAPES = {
    "bash": Shape("command", Sort.COMMAND),
    "shell": Shape("command", Sort.COMMAND),
    "powershell": Shape("command", Sort.COMMAND),
    "exec_command": Shape("command", Sort.COMMAND),
    "run_shell_command": Shape("command", Sort.COMMAND),
    "read": Shape("file_path", Sort.PATH),
    "edit": _EDIT,
    "write": _EDIT,
    "multiedit": _EDIT,
    "notebookedit": Shape("notebook_path", Sort.PATH, is_edit=True),
    "glob": Shape("path", Sort.PATH, default="."),
    "grep": Shape("path", Sort.PATH, default="."),
    "ls": Shape("path", Sort.PATH, default="."),
    "webfetch": Shape("url", Sort.URL),
}
_SORTS = {
    "command": Sort.COMMAND,
    "cmd": Sort.COMMAND,
    "file_path": Sort.PATH,
    "filepath": Sort.PATH,
    "notebook_path": Sort.PATH,
    "path": Sort.PATH,
    "directory": Sort.PATH,
    "cwd": Sort.PATH,
    "url": Sort.URL,
    "uri": Sort.URL,
}


def shape_of(tool: str) -> Shape | None:
    """By the tool's name, in any case: peers write `Bash` or `bash` for the same thing."""
    return _SHAPES.get(tool.casefold())


def sort_of(argument: str) -> Sort:
    """By the argument's name, in any spelling (`filePath`)."""
    name = argument.casefold()
    return _SORTS.get(name) or _SORTS.get(name.replace("_", "")) or Sort.TEXT
