"""Paths against patterns: `src/**`, `/etc/*`, `~/notes/**`; `./**` is inside the working directory, `!./**` outside."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from harness.policy.call import Place
from harness.policy.globs import escaped, is_literal, path_fits


def path_is_surely(pattern: str, path: str, place: Place) -> bool:
    """Whether what the path leads to fits, links followed; also for a program that resolves `..` before it looks."""
    if place.resolve is None or not _is_clear(path):
        return False
    negated, wanted = _split(pattern)
    found = leads_to(path, place)
    if negated:
        return not any(
            path_fits(anchored, one, ignore_case=True)
            for anchored in _anchored(wanted, place, at_any_depth=False)
            for one in found
        )
    # only the working directory itself may be a link: below it a link is what somebody may have put there
    anchored = _absolute(wanted, place.resolve(place.cwd), place.home)
    return all(path_fits(anchored, one) for one in found)


def path_may_be(pattern: str, path: str, place: Place) -> bool:
    """Whether the path fits in any reading: as written, where its links lead, in another case."""
    negated, wanted = _split(pattern)
    patterns = list(_anchored(wanted, place, at_any_depth=not negated))
    fits = [
        any(path_fits(anchored, one, ignore_case=not negated) for anchored in patterns)
        for one in _readings(path, place)
    ]
    return not all(fits) if negated else any(fits)


def inside_prefix(pattern: str) -> str | None:
    """The directory below the working directory that a pattern such as `src/**` stands for; null for any other."""
    if pattern.startswith(("/", "~")) or not pattern.endswith("/**"):
        return None
    directory = pattern.removesuffix("/**").removeprefix("./")
    parts = directory.split("/")
    if directory == ".":
        return "."
    if not _is_clear(directory) or any(part in ("", ".", "..") or not is_literal(part) for part in parts):
        return None
    return None if parts[0].startswith("!") else directory


def leads_to(path: str, place: Place) -> set[str]:
    """Where it leads for programs that follow links first, and for those that take `..` out of the text first."""
    resolve = place.resolve or _normal
    whole = posixpath.join(place.cwd, path)
    return {resolve(whole), resolve(_normal(whole))}


def names_in(path: str) -> tuple[str, ...]:
    """Its components, in lower case."""
    return tuple(part.casefold() for part in path.split("/") if part)


def _split(pattern: str) -> tuple[bool, str]:
    return (True, pattern[1:]) if pattern.startswith("!") else (False, pattern)


def _is_clear(path: str) -> bool:
    """Not something that one program takes as it is and another expands, decodes or trims."""
    return (
        bool(path)
        and path.isprintable()
        and not path.startswith("~")
        and path == path.strip()
        and "\\" not in path
        and "://" not in path
    )


def _readings(path: str, place: Place) -> Iterator[str]:
    for text in {path, path.strip(), path.replace("\\", "/").strip()}:
        expanded = _with_home(text, place.home)
        yield _normal(posixpath.join(place.cwd, expanded))
        if "\0" not in expanded:
            yield from leads_to(expanded, place)


def _anchored(wanted: str, place: Place, *, at_any_depth: bool) -> Iterator[str]:
    yield _absolute(wanted, place.cwd, place.home)
    if place.resolve is not None:
        yield _absolute(wanted, place.resolve(place.cwd), place.home)
    if at_any_depth and "/" not in wanted:
        yield f"/**/{wanted}"


def _absolute(wanted: str, cwd: str, home: str | None) -> str:
    """The pattern with the directory it starts from, which is no pattern itself."""
    expanded = _with_home(wanted, home)
    if expanded.startswith("/"):
        return _normal(expanded)
    return posixpath.join(escaped(_normal(cwd)), _normal(expanded))


def _with_home(text: str, home: str | None) -> str:
    if home is not None and (text == "~" or text.startswith("~/")):
        return home + text[1:]
    return text


def _normal(path: str) -> str:
    """Two leading slashes are one here, whatever POSIX leaves open."""
    normal = posixpath.normpath(path)
    return normal[1:] if normal.startswith("//") else normal
