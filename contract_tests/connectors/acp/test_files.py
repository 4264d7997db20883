"""The files that an agent may ask its client for: whatever path it names, nothing outside is read or written."""

from __future__ import annotations

import os
import string
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.acp import files
from connectors.acp.client_calls import NOT_FOUND, Refusal, Write
from connectors.acp.files import ClientFiles
from contract_tests.requirements import requirement

SECRET = "secret"


@pytest.fixture
def place(tmp_path: Path) -> Generator[Path]:
    yield laid_out(tmp_path)


def laid_out(directory: Path) -> Path:
    """A working directory with every kind of link, beside what must not be touched; gives the working directory."""
    work, outside = directory / "work", directory / "outside"
    for made in (work / "inner" / "deep", outside / "folder"):
        made.mkdir(parents=True)
    (work / "a.txt").write_text("mine")
    (work / "inner" / "b.txt").write_text("mine too")
    (outside / "secret.txt").write_text(SECRET)
    (outside / "folder" / "secret.txt").write_text(SECRET)
    (work / "to-file").symlink_to(outside / "secret.txt")
    (work / "to-folder").symlink_to(outside / "folder")
    (work / "up").symlink_to("..")
    (work / "inner" / "home").symlink_to(work)
    (work / "ring").symlink_to("ring")
    (work / "nowhere").symlink_to(outside / "new.txt")
    os.link(outside / "secret.txt", work / "hard")
    os.mkfifo(work / "pipe")
    (directory / "work-twin").mkdir()
    return work


def refused(act: Any, *arguments: Any, **more: Any) -> Refusal:
    with pytest.raises(Refusal) as refusal:
        act(*arguments, **more)
    return refusal.value


# --- what is inside --------------------------------------------------------------------------------------------------


@requirement("acp:client:files")
def test_a_file_is_read_and_written_through_links_that_stay_inside(place: Path) -> None:
    mine = ClientFiles(place)
    assert mine.read(f"{place}/inner/home/inner/../a.txt") == "mine"
    mine.write(Write(f"{place}/inner/home/inner/b.txt", "é\r\n"))
    assert (place / "inner" / "b.txt").read_bytes() == "é\r\n".encode()
    mine.write(Write(f"{place}/new/er/c.txt", "made"))
    assert mine.read(f"{place}/new/er/c.txt") == "made"
    mine.write(Write(f"{place}/a.txt", ""))
    assert mine.read(f"{place}/a.txt") == ""
    assert mine.directory(None) == mine.directory(f"{place}/inner/home") == place
    assert mine.directory(f"{place}/inner") == place / "inner"


@requirement("acp:client:files")
@pytest.mark.parametrize(
    ("line", "limit", "text"),
    [(None, None, "1\n2\n3"), (2, None, "2\n3"), (1, 2, "1\n2\n"), (3, 9, "3"), (9, 1, ""), (0, 1, "1\n"), (1, 0, "")],
)
def test_lines_are_counted_from_one(place: Path, line: int | None, limit: int | None, text: str) -> None:
    (place / "a.txt").write_text("1\n2\n3")
    assert ClientFiles(place).read(f"{place}/a.txt", line=line, limit=limit) == text


# --- what is not -----------------------------------------------------------------------------------------------------


@requirement("acp:client:files")
@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "{work}/../outside/secret.txt", "{work}/to-file", "{work}/to-folder/secret.txt"),
        *("{work}/up/outside/secret.txt", "{work}-twin/x", "{work}/inner/../../outside/secret.txt", "{work}/nowhere"),
        *("a.txt", "", ".", "{work}", "{work}/", "{work}/ring", "{work}/pipe", "{work}/inner", "{work}/a.txt/x"),
        *("{work}/nul\0", "{work}/half\ud800", "{work}/" + "long" * 100),
    ],
)
def test_no_path_leads_out_and_only_files_are_files(place: Path, path: str) -> None:
    mine, named = ClientFiles(place), path.format(work=place)
    refused(mine.read, named)
    refused(mine.write, Write(named, "x"))
    assert (place.parent / "outside" / "secret.txt").read_text() == SECRET
    assert not (place.parent / "outside" / "new.txt").exists()


@requirement("acp:client:files")
def test_a_file_with_another_name_is_not_written_because_that_may_lie_outside(place: Path) -> None:
    assert "other names" in refused(ClientFiles(place).write, Write(f"{place}/hard", "x")).message
    assert (place / "hard").read_text() == SECRET


@requirement("acp:client:files")
def test_a_text_that_cannot_be_written_leaves_the_file_as_it_was(place: Path) -> None:
    assert "half a character" in refused(ClientFiles(place).write, Write(f"{place}/a.txt", "x\ud800")).message
    assert (place / "a.txt").read_text() == "mine"


@requirement("acp:client:files")
def test_what_is_missing_too_large_or_no_text_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ClientFiles(place)
    missing = refused(mine.read, f"{place}/none.txt")
    assert (missing.code, "ENOENT" in missing.message) == (NOT_FOUND, True)
    (place / "a.txt").write_bytes(b"\xff")
    assert "no UTF-8" in refused(mine.read, f"{place}/a.txt").message
    monkeypatch.setattr(files, "MOST_BYTES", 3)
    assert "larger" in refused(mine.read, f"{place}/inner/b.txt").message


@requirement("acp:client:files")
@pytest.mark.parametrize("swapped", ["inner", "inner/b.txt"])
def test_a_link_that_comes_in_after_the_look_is_not_followed(
    place: Path, swapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's own processes may change the directory while we are about to open what they named."""
    looked = ClientFiles._parts  # pyright: ignore[reportPrivateUsage]

    def looked_then_swapped(self: ClientFiles, path: str) -> Any:
        parts = looked(self, path)
        there = place / swapped
        there.rename(place / "gone")
        there.symlink_to(place.parent / "outside" / ("folder" if swapped == "inner" else "secret.txt"))
        return parts

    monkeypatch.setattr(ClientFiles, "_parts", looked_then_swapped)
    refused(ClientFiles(place).write, Write(f"{place}/inner/b.txt", "x"))
    assert (place.parent / "outside" / "secret.txt").read_text() == SECRET
    assert list((place.parent / "outside" / "folder").iterdir()) == [place.parent / "outside" / "folder" / "secret.txt"]


NAMES = st.sampled_from(
    [
        *("..", ".", "a.txt", "inner", "deep", "home", "up", "to-file", "to-folder", "secret.txt", "work", "outside"),
        *("hard", "nowhere", "ring", "pipe", "new", "work-twin", "folder", "", "//"),
    ]
) | st.text(string.printable, max_size=4)


@requirement("acp:client:files")
@settings(max_examples=150)
@given(starts=st.sampled_from(["{work}/", "{work}/../", "/", "{work}-", ""]), names=st.lists(NAMES, max_size=6))
def test_whatever_is_named_the_outside_stays_as_it_was(starts: str, names: list[str]) -> None:
    with TemporaryDirectory() as made:
        work = laid_out(Path(made).resolve())
        named = starts.format(work=work) + "/".join(names)
        mine = ClientFiles(work)
        before = outside_of(work)
        with suppress(Refusal):
            assert SECRET not in mine.read(named) or named.endswith("hard")
        try:
            mine.write(Write(named, "written"))
        except Refusal:
            pass
        else:
            assert Path(named).resolve().is_relative_to(work)
            assert mine.read(named) == "written"
        assert outside_of(work) == before


def outside_of(work: Path) -> list[tuple[str, str]]:
    found = [path for path in sorted(work.parent.rglob("*")) if not path.is_relative_to(work)]
    return [(str(path), path.read_text() if path.is_file() else "") for path in found]
