"""Compares what the host was told with what the peer received and with what the journal has, over all lives."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from contract_tests.core.crash_world import Plan
from harness.conversation.recovery import Past, past_of
from harness.local import LOCAL_OWNER
from harness.store import SqliteStore

Fact: TypeAlias = dict[str, Any]
HOST_OUTCOMES = ("answered", "refused")


@dataclass
class Story:
    """The diary, read: everything by turn."""

    facts: list[Fact]
    past: Past
    streams: dict[str, dict[int, Fact]] = field(default_factory=dict[str, dict[int, Fact]])
    complaints: list[str] = field(default_factory=list[str])

    def expect(self, holds: bool, complaint: str) -> None:
        if not holds:
            self.complaints.append(complaint)


async def story_in(directory: Path) -> Story:
    """All lives that a directory tells of."""
    lines = (directory / "diary.jsonl").read_text(encoding="utf-8").splitlines()
    async with SqliteStore(directory / "journal.db") as store:
        records = await store.list_conversations(LOCAL_OWNER)
        past = past_of(await store.entries(records[0].conversation_id)) if records else Past()
    story = Story([json.loads(line) for line in lines], past)
    story.expect(len(records) == 1, f"{len(records)} conversations for one client key")
    marks = [fact["what"] for fact in story.facts if fact["what"] in ("life", "finished")]
    story.expect(marks[-1] == "finished", "the last life did not finish")
    return story


async def complaints_about(directory: Path, plan: Plan) -> list[str]:
    """Everything that was promised and not kept; empty when all is well."""
    story = await story_in(directory)
    read_streams(story)
    check_requests(story)
    check_accepted_answers(story, plan)
    check_what_the_peer_got(story, plan)
    check_ends(story, plan)
    return story.complaints


def read_streams(story: Story) -> None:
    """One stream per turn, whatever was polled when; it is the journal's, and no poll went backwards."""
    for fact in story.facts:
        if fact["what"] != "polled":
            continue
        stream = story.streams.setdefault(fact["turn"], {})
        for item in fact["items"]:
            known = stream.setdefault(item["sequence_no"], item)
            story.expect(known == item, f"number {item['sequence_no']} of {fact['turn']} is {known} and {item}")
        numbers = [item["sequence_no"] for item in fact["items"]]
        expected = list(range(fact["since"] + 1, fact["number"] + 1))
        story.expect(numbers == expected, f"a poll of {fact['turn']} after {fact['since']} gave {numbers}")
    for turn_id, stream in story.streams.items():
        turn = story.past.turns.get(turn_id)
        kept = {} if turn is None else {item.sequence_no: item.to_dict() for item in turn.items}
        story.expect(stream == kept, f"the host saw another stream of {turn_id} than the journal has")
        story.expect(list(sorted(stream)) == list(range(1, len(stream) + 1)), f"{turn_id} has holes")


def opened(story: Story) -> list[Fact]:
    items = (item for stream in story.streams.values() for item in stream.values())
    return [item["request"] for item in items if item["kind"] == "request_opened"]


def outcomes(story: Story) -> dict[str, Fact]:
    items = (item for stream in story.streams.values() for item in stream.values())
    return {item["request_id"]: item for item in items if item["kind"] == "request_resolved"}


def check_requests(story: Story) -> None:
    ids = Counter(request["request_id"] for request in opened(story))
    story.expect(set(ids.values()) <= {1}, f"request ids were given twice: {ids}")
    for turn_id, stream in story.streams.items():
        calls = Counter(
            item["request"]["peer_request_id"] for item in stream.values() if item["kind"] == "request_opened"
        )
        story.expect(set(calls.values()) <= {1}, f"a call of {turn_id} came twice to the host: {calls}")
        resolved = Counter(item["request_id"] for item in stream.values() if item["kind"] == "request_resolved")
        ours = {item["request"]["request_id"] for item in stream.values() if item["kind"] == "request_opened"}
        story.expect(set(resolved) == ours and set(resolved.values()) <= {1}, f"outcomes of {turn_id}: {resolved}")


def recorded(story: Story) -> dict[str, Fact]:
    return {
        response.request_id: response.to_dict()
        for turn in story.past.turns.values()
        for response in turn.responses.values()
    }


def check_accepted_answers(story: Story, plan: Plan) -> None:
    """What the host was told to be accepted is on record and is what became of the request."""
    ends, kept = outcomes(story), recorded(story)
    cancelled, lost, accepted = set[str](), set[str](), set[str]()
    for fact in story.facts:
        match fact["what"]:
            case "cancelled":
                cancelled.add(fact["turn"])
            case "polled":
                lost |= {one["request_id"] for one in fact["items"] if one.get("outcome") in ("lost", "cancelled")}
                again = accepted & set(fact["pending"])
                story.expect(not again, f"what was answered is asked again: {again}")
            case "accepted":
                request_id = fact["response"]["request_id"]
                accepted.add(request_id)
                if request_id in lost or fact["turn"] in cancelled:
                    continue  # it came too late, which the stream told
                outcome = ends.get(request_id, {}).get("outcome")
                story.expect(outcome in HOST_OUTCOMES, f"the accepted answer to {request_id} came to '{outcome}'")
                story.expect(kept.get(request_id) == fact["response"], f"the accepted answer to {request_id} is lost")
            case _:
                pass


def check_what_the_peer_got(story: Story, plan: Plan) -> None:
    """Nothing that is not on record, nothing twice, and nothing accepted that is neither delivered nor told."""
    ends, kept = outcomes(story), recorded(story)
    seen: list[list[Fact]] = []
    for fact in story.facts:
        if fact["what"] == "life":
            seen.append([])
        elif fact["what"] == "peer" and fact["saw"] == "answer" and fact["response"].get("request_id"):
            seen[-1].append(fact["response"])
    for answers in seen if plan.resume == "exact" else [[one for each in seen for one in each]]:
        times = Counter(answer["request_id"] for answer in answers)
        story.expect(set(times.values()) <= {1}, f"answers were delivered twice: {times}")
    for answer in (one for each in seen for one in each):
        request_id = answer["request_id"]
        outcome = ends.get(request_id, {}).get("outcome")
        if outcome in HOST_OUTCOMES:
            story.expect(
                kept.get(request_id) == answer, f"the peer got an answer to {request_id} that is not on record"
            )
        else:
            story.expect(outcome in ("expired", "cancelled"), f"the peer got an answer to {request_id}: '{outcome}'")
    if plan.resume != "exact":
        check_what_was_lost(story, {answer["request_id"] for each in seen for answer in each})


def check_what_was_lost(story: Story, delivered: set[str]) -> None:
    kept = recorded(story)
    for fact in story.facts:
        if fact["what"] != "polled" or fact["error"] is None or fact["error"]["code"] != "peer_lost":
            continue
        detail = {one["request_id"]: one for one in json.loads(fact["error"]["detail_json"])["open_requests"]}
        turn = story.past.turns.get(fact["turn"])
        for request_id in [] if turn is None else turn.responses:
            told = detail.get(request_id)
            if request_id in delivered:
                said = None if told is None else told["outcome"]
                story.expect(said != "answered_not_delivered", f"{request_id} was delivered, the detail denies it")
            else:
                story.expect(told is not None, f"{request_id} was answered, not delivered, and is not in the detail")
                answer = None if told is None else told.get("response")
                story.expect(answer == kept[request_id], f"the detail has another answer to {request_id}")


def check_ends(story: Story, plan: Plan) -> None:
    """Each turn ends once, and as it must."""
    for turn_id, stream in story.streams.items():
        ended = [item for item in stream.values() if item["kind"] == "turn_ended"]
        story.expect(len(ended) == 1, f"{turn_id} ended {len(ended)} times")
        if not ended:
            return
        story.expect(ended[0]["sequence_no"] == max(stream), f"{turn_id} goes on after its end")
    statuses = {turn_id: stream[max(stream)].get("status") for turn_id, stream in story.streams.items()}
    killed = sum(fact["what"] == "life" for fact in story.facts) > 1
    first, second = statuses.get("t1"), statuses.get("t2")
    if second == "completed":  # all was answered before the host came to cancel it
        ends = [item["outcome"] for item in story.streams["t2"].values() if item["kind"] == "request_resolved"]
        story.expect(ends == ["answered"] * 2, f"the second turn is complete with {ends}")
    elif plan.resume == "exact" or not killed:
        story.expect((first, second) == ("completed", "cancelled"), f"the turns ended {statuses}")
    else:
        story.expect(first in ("completed", "failed"), f"the first turn ended '{first}'")
        story.expect(second in ("cancelled", "failed"), f"the second turn ended '{second}'")
    if first == "completed":
        texts = [item["text"] for item in story.streams["t1"].values() if item["kind"] == "text_delta"]
        ids = {request["call_id"]: request["request_id"] for request in opened(story)[:5] if request.get("call_id")}
        said = ", ".join(f"{call}: answer to {ids.get(call)}" for call in ("c1", "c2", "c3"))
        story.expect(texts[-1:] == [said], f"the model was told {texts[-1:]}")
