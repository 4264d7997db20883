"""An entry made ready for a request: names, ids and quoted results. No wire."""

import pytest

from contract_tests.requirements import requirement
from harness.scripted_model import PastCall, read_script
from harness.scripted_model.anthropic import AnthropicDialect
from harness.scripted_model.dialect import ModelRequest
from harness.scripted_model.playback import Playback, Played, ScriptMismatch, peer_name

DIALECT = AnthropicDialect()


def played(entry: dict[str, object], request: ModelRequest, run: str = "run") -> Played:
    return Playback(read_script([entry]), run=run).next_for(request, DIALECT)


@requirement("scripted-model:names:peer-prefix")
@pytest.mark.parametrize(
    ("tools", "found"),
    [
        (("mcp__host__get_weather", "Bash"), "mcp__host__get_weather"),
        (("mcp__host__get_weather", "get_weather"), "get_weather"),
        (("mcp__host__forget_weather",), "get_weather"),
        ((), "get_weather"),
    ],
)
def test_a_name_is_the_same_or_prefixed_or_stays_as_it_stands(tools: tuple[str, ...], found: str) -> None:
    assert peer_name("get_weather", tools) == found


@requirement("scripted-model:names:peer-prefix")
def test_a_name_that_fits_two_tools_is_refused() -> None:
    with pytest.raises(ScriptMismatch, match=r"entry 1 .*'echo' fits several tools"):
        played({"calls": [{"name": "echo"}]}, ModelRequest(tools=("mcp__a__echo", "mcp__b__echo")))


@requirement("scripted-model:ids:unique-per-run")
def test_ids_are_unique_within_and_across_runs_unless_given() -> None:
    script = read_script(
        [{"calls": [{"name": "a"}, {"name": "a"}]}, {"calls": [{"name": "a"}, {"name": "a", "id": "x"}]}]
    )
    runs = [Playback(script, run="one"), Playback(script, run="two")]

    answers = [run.next_for(ModelRequest(), DIALECT).answer for run in runs for _ in script]
    ids = [call.call_id for answer in answers for call in answer.calls]

    assert ids.count("x") == 2
    made = [call_id for call_id in ids if call_id != "x"]
    assert len(set(made)) == len(made) == 6
    assert all(call_id.startswith("toolu_") for call_id in made)
    assert len({answer.message_id for answer in answers}) == 4


@requirement("scripted-model:results:quoted")
def test_text_quotes_results_by_call_id_and_by_the_name_of_a_tool_called_once() -> None:
    history = (PastCall("c1", "mcp__h__add", "3"), PastCall("c2", "mcp__h__mul", "{{results.c1}}"))

    answer = played(
        {"text": ["sum {{results.c1}}", "product {{ results.mul }}"]}, ModelRequest(past_calls=history)
    ).answer

    assert answer.text == ("sum 3", "product {{results.c1}}")


@requirement("scripted-model:results:quoted")
def test_a_result_that_is_not_there_is_an_error_that_takes_no_entry() -> None:
    playback = Playback(read_script([{"text": "{{results.c1}}"}]), run="run")

    with pytest.raises(ScriptMismatch, match="no result of 'c1' in the request; results there: none"):
        playback.next_for(ModelRequest(past_calls=(PastCall("c1", "add"),)), DIALECT)
    answered = playback.next_for(ModelRequest(past_calls=(PastCall("c1", "add", "3"),)), DIALECT)

    assert answered.answer.text == ("3",)


@requirement("scripted-model:results:quoted")
def test_a_tool_called_twice_cannot_be_quoted_by_name() -> None:
    history = (PastCall("c1", "add", "3"), PastCall("c2", "add", "4"))

    with pytest.raises(ScriptMismatch, match="'add' was called 2 times: give the call an 'id'"):
        played({"text": "{{results.add}}"}, ModelRequest(past_calls=history))
