"""What a replay notices: every field of everything that we send, and where it first differs."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract_tests.conformance.test_replay import RECORDINGS, SCENARIOS
from contract_tests.requirements import requirement
from harness.scripted_model.connection import HttpRequest
from harness.testing.checks import Divergence
from harness.testing.peers.exchanges import FREE_HEADERS, keys_in, meaning_of, without_keys
from harness.testing.peers.replay_cli import Difference, Names
from harness.testing.recording import read_recording, replay
from harness.testing.rows import ROWS

NAME = "<"
"""An id stands as `<id 7>`: it is bound to whatever comes, and so are paths."""


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every field of a message, those of objects and lists too."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from leaves(one, (*path, key))


def holder(message: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        message = message[key]
    return message


def mutants(message: Any) -> Iterator[tuple[str, Any]]:
    """The message with each field changed, dropped and, where it may be, duplicated once."""
    for path in leaves(message):
        value = holder(message, path)[path[-1]]
        is_bound = isinstance(value, str) and NAME in value
        if not is_bound and not isinstance(value, dict | list):
            changed = copy.deepcopy(message)
            holder(changed, path)[path[-1]] = [value]
            yield f"{path} changed", changed
        dropped = copy.deepcopy(message)
        del holder(dropped, path)[path[-1]]
        yield f"{path} dropped", dropped
        doubled = copy.deepcopy(message)
        place = holder(doubled, path)
        if isinstance(place, list):
            place.append(copy.deepcopy(value))
        else:
            place[f"{path[-1]} again"] = value
        yield f"{path} duplicated", doubled


@requirement("conformance:replay:strict")
@pytest.mark.parametrize("row", sorted({row for row, _ in RECORDINGS}))
def test_every_field_of_ours_that_changes_is_noticed(
    row: str, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    count = 0
    survivors: list[str] = []
    for scenario, file in ((scenario, file) for (of, scenario), file in RECORDINGS.items() if of == row):
        for line in read_recording(file).lines[1:]:
            entry = json.loads(line)
            if entry.get("from") != "host":
                continue
            message = json.loads(entry["line"])
            assert Names({}).match(message, message) is not None
            for what, mutant in mutants(message):
                count += 1
                try:
                    Names({}).match(message, mutant)
                except Difference:
                    continue
                survivors.append(f"{scenario}: {what}")
    record_property("mutants", count)
    with capsys.disabled():
        print(f"\n{row}: {count} fields of ours changed, dropped or duplicated, {len(survivors)} not noticed")
    assert count > 1000
    assert survivors == []


@requirement("conformance:replay:strict")
def test_headers_that_are_free_have_a_reason_and_all_others_are_looked_at() -> None:
    head = {"authorization": "Bearer sk-somebodys", "anthropic-version": "1", "host": "127.0.0.1:1"}
    request = HttpRequest("POST", "/v1/messages", head, b'{"n": 1.5, "key": "sk-somebodys"}')
    recorded = json.loads(without_keys(meaning_of(request), keys_in(request)))
    assert "sk-somebodys" not in json.dumps(recorded)
    for name, reason in FREE_HEADERS.items():
        assert reason, name
        other = HttpRequest("POST", "/v1/messages", {**head, name: "another"}, request.body)
        Names({}).match(recorded, meaning_of(other))
    mutants_of_ours = (
        HttpRequest("POST", "/v1/messages", {**head, "anthropic-version": "2"}, request.body),
        HttpRequest("POST", "/v1/messages", {**head, "x-more": "2"}, request.body),
        HttpRequest("POST", "/v1/messages", {"authorization": "Bearer sk-somebodys"}, request.body),
        HttpRequest("GET", "/v1/messages", head, request.body),
        HttpRequest("POST", "/v1/message", head, request.body),
        HttpRequest("POST", "/v1/messages", head, b'{"n": 1.5, "key": "another"}'),
        HttpRequest("POST", "/v1/messages", head, b"no JSON"),
    )
    for mutant in mutants_of_ours:
        with pytest.raises(Difference):
            Names({}).match(recorded, meaning_of(mutant))


@requirement("conformance:replay:strict")
@pytest.mark.parametrize(
    ("row", "said", "changed", "place"),
    [
        ("claude", '12 °C\\"}]}}}', '13 °C\\"}]}}}', "/response/response/mcp_response/result/content/0/text"),
        ("claude:bridge", '12 °C\\"}]}}"', '13 °C\\"}]}}"', "/result/content/0/text"),
        ("codex", '12 °C\\"}],\\"success', '13 °C\\"}],\\"success', "/result/contentItems/0/text"),
        ("openai", '\\"output\\": \\"12 °C', '\\"output\\": \\"13 °C', "/body/input/3/output"),
        ("anthropic", '\\"text\\": \\"12 °C', '\\"text\\": \\"13 °C', "/body/messages/2/content/0/content/0/text"),
    ],
)
async def test_a_connector_that_says_something_else_diverges_at_that_place(
    row: str, said: str, changed: str, place: str, tmp_path: Path
) -> None:
    recorded = RECORDINGS[row, "one-call"].read_text(encoding="utf-8")
    file = tmp_path / "changed.jsonl"
    file.write_text(recorded.replace(said, changed), encoding="utf-8")
    assert file.read_text(encoding="utf-8") != recorded
    with pytest.raises(Divergence, match=f"replay diverged: expected line .*; at '{place}': expected '13"):
        await replay(SCENARIOS["one-call"], ROWS[row], file, tmp_path)


@requirement("conformance:replay:strict")
async def test_a_request_that_was_recorded_and_never_comes_is_missed(tmp_path: Path) -> None:
    lines = read_recording(RECORDINGS["anthropic", "one-call"]).lines
    more = [line.replace('"exchange": 1,', '"exchange": 9,') for line in lines if '"exchange": 1,' in line]
    file = tmp_path / "longer.jsonl"
    file.write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")
    with pytest.raises(Divergence, match=r"1 recorded request\(s\) never came, the first is 'POST /v1/messages'"):
        await replay(SCENARIOS["one-call"], ROWS["anthropic"], file, tmp_path)
