"""Scripts are read from YAML, JSON and Python values, and a bad one is refused with file, entry and member."""

from pathlib import Path
from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.errors import ConfigError
from harness.scripted_model import ScriptedCall, ScriptedUsage, ScriptEntry, read_script


def test_yaml_json_and_python_values_say_the_same(tmp_path: Path) -> None:
    yaml_file, json_file = tmp_path / "script.yaml", tmp_path / "script.json"
    yaml_file.write_text("- {text: [a, b], calls: [{name: add, arguments: {x: 1}}]}\n- {text: done}\n")
    json_file.write_text('[{"text": ["a", "b"], "calls": [{"name": "add", "arguments": {"x": 1}}]}, {"text": "done"}]')
    values = (
        ScriptEntry(text=("a", "b"), calls=(ScriptedCall(name="add", arguments={"x": 1}),)),
        {"text": "done"},
    )

    assert read_script(yaml_file) == read_script(json_file) == read_script(values)


def test_a_yaml_date_stays_text(tmp_path: Path) -> None:
    file = tmp_path / "script.yaml"
    file.write_text("- calls: [{name: book, arguments: {day: 2026-11-29}}]\n")

    assert read_script(file)[0].calls[0].arguments == {"day": "2026-11-29"}


def test_big_integers_keep_their_digits() -> None:
    call = ScriptedCall(name="add", arguments={"n": 123456789012345678901234567890})

    assert call.arguments_text == '{"n": 123456789012345678901234567890}'


def test_usage_without_figures_is_not_zero() -> None:
    assert ScriptedUsage().input_tokens > 0


@requirement("scripted-model:script:precise-errors")
@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"text": "a"}, {"txt": "b"}], "entry 2, 'txt': unknown member"),
        ([{"calls": [{"arguments": {}}]}], "entry 1, 'calls[0].name': is missing"),
        ([{"calls": [{"name": "a", "arguments": "{}"}]}], "entry 1, 'calls[0].arguments': "),
        (
            [{"calls": [{"name": "a", "arguments": {"x": 1}, "arguments_json": "{}"}]}],
            "entry 1, 'calls[0]': 'arguments' ",
        ),
        ([{"text": 3}], "entry 1, 'text': "),
        ([{"error": {"status": 200, "message": "m"}}], "entry 1, 'error.status': "),
        ([{"error": {"status": 400, "message": "m"}, "text": "a"}], "entry 1: an entry with 'error' has no 'text'"),
        ([{"drop": True, "hang": True}], "entry 1: 'drop' and 'hang' exclude each other"),
        ([{}], "entry 1: an entry needs one of 'text'"),
        (["hello"], "entry 1: must be a mapping, not 'hello'"),
        ([{"text": "a", "usage": {"input_tokens": 1, "cached_input_tokens": 2}}], "entry 1, 'usage': 'input_tokens' "),
    ],
)
def test_a_bad_entry_is_named_with_its_number_and_member(entries: list[Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_script(entries)

    assert message in caught.value.message
    assert "\n" not in caught.value.message


@requirement("scripted-model:script:precise-errors")
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("script.yaml", "- text: [a\n", "is no YAML: line 2, column 1: "),
        ("script.yaml", "text: a\n", "must be a list with one entry per model call"),
        ("script.yaml", "", "must be a list with one entry per model call"),
        ("script.json", "[{]", "is no JSON: line 1, column 3: "),
        (
            "script.json",
            '[{"txt": 1, "tools": 2}]',
            "entry 1, 'txt': unknown member, take it out or correct its name (",
        ),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    file = tmp_path / name
    file.write_text(text)

    with pytest.raises(ConfigError) as caught:
        read_script(file)

    assert str(file) in caught.value.message
    assert message in caught.value.message
    assert caught.value.detail["file"] == str(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no script '.*absent\.yaml'"):
        read_script(tmp_path / "absent.yaml")
