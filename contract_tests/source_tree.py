"""The files of this clone, as a commit would hold them: what .gitignore names is not ours."""

import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("bridge_mcp", "connectors", "harness")


def _ignored_patterns() -> list[str]:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    return [".git", *(line.rstrip("/") for line in lines if line and not line.startswith("#"))]


def files_below(directory: Path) -> Iterator[Path]:
    """Yield every file below a directory that is not ignored."""
    patterns = _ignored_patterns()
    for entry in sorted(directory.iterdir()):
        if any(fnmatch(entry.name, pattern) for pattern in patterns):
            continue
        if entry.is_dir():
            yield from files_below(entry)
        else:
            yield entry


def copy_source(destination: Path) -> Path:
    """Copy the clone without what is ignored, so that a build finds no leftovers of an earlier one."""
    return shutil.copytree(ROOT, destination, ignore=shutil.ignore_patterns(*_ignored_patterns()))


def modules_of(package: str) -> Iterator[str]:
    """Yield the dotted names of all modules of a package, itself first."""
    for file in sorted((ROOT / package).rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
