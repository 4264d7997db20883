"""Tools from a Python file: `FILE.py`, or `FILE.py:name` for one function."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.errors import ConfigError

Function = Callable[..., Any]


def load_tools(*specs: str) -> list[Function]:
    """The functions that these `FILE.py[:name]` name; each file is run once.

    Without a name all public functions that the file itself defines, in their order.

    Raises:
        ConfigError: one line that says what is wrong with which file.
    """
    modules: dict[Path, ModuleType] = {}
    functions: list[Function] = []
    for spec in specs:
        file, name = _parsed(spec)
        path = Path(file).expanduser()
        module = modules.get(path) or _load(path)
        modules[path] = module
        functions += [_named(module, path, name)] if name else _public(module, path)
    return functions


def _parsed(spec: str) -> tuple[str, str]:
    if spec.endswith(".py"):
        return spec, ""
    file, _, name = spec.rpartition(":")
    return (file, name) if file.endswith(".py") else (spec, "")


def _load(path: Path) -> ModuleType:
    source = _source(path)
    resolved = path.resolve()
    digest = hashlib.sha256(str(resolved).encode()).hexdigest()[:8]
    spec = importlib.util.spec_from_file_location(f"harness_tools_{digest}_{path.stem}", resolved)
    if spec is None or spec.loader is None:
        raise ConfigError(f"tools file '{path}' is no Python file: its name must end in '.py'", file=str(path))
    module = importlib.util.module_from_spec(spec)
    directory = str(resolved.parent)
    if directory not in sys.path:
        # last, so that its neighbours can be imported but never take the place of an installed package
        sys.path.append(directory)
    sys.modules[spec.name] = module  # dataclasses and annotations look their module up by name
    try:
        exec(compile(source, resolved, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:  # whatever the caller's file does when it is run
        del sys.modules[spec.name]
        raise _broken(path, resolved, error) from error
    return module


def _source(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"no tools file '{path}': name a Python file", file=str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot read the tools file '{path}': {error.strerror}", file=str(path)) from error


def _broken(path: Path, resolved: Path, error: BaseException) -> ConfigError:
    """Where in the caller's own file it went wrong."""
    if isinstance(error, SyntaxError) and error.filename == str(resolved):
        line, reason = error.lineno, f"syntax error: {error.msg}"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(resolved)), None)
        reason = f"{type(error).__name__}: {error}"
    place = f"'{path}'" if line is None else f"'{path}', line {line}"
    return ConfigError(f"tools file {place}: {' '.join(reason.split())}", file=str(path), line=line)


def _public(module: ModuleType, path: Path) -> list[Function]:
    functions = [value for name, value in vars(module).items() if not name.startswith("_") and _is_own(value, module)]
    if not functions:
        raise ConfigError(f"tools file '{path}' defines no public function: nothing to call", file=str(path))
    return list(dict.fromkeys(functions))


def _named(module: ModuleType, path: Path, name: str) -> Function:
    value = getattr(module, name, None)
    if not inspect.isroutine(value):
        own = [known for known, other in vars(module).items() if _is_own(other, module)]
        known = ", ".join(f"'{one}'" for one in own) or "none"
        raise ConfigError(f"tools file '{path}' has no function '{name}'; it has: {known}", file=str(path))
    return value


def _is_own(value: object, module: ModuleType) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__
