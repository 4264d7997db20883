"""The writer of a conversation's record: what is promised to those who wait for it."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest

from contract_tests.core.conversations import open_house
from contract_tests.core.stores import delta, flat, record
from contract_tests.llm_suite import Peer, begin, is_over, is_waiting, results, say, texts, until
from contract_tests.requirements import requirement
from harness.conversation.journal import Journal
from harness.errors import HarnessError, Internal
from harness.store import Entry, MemoryStore, Summary


class MoodyStore(MemoryStore):
    """Each write waits for its turn, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = False
        self.may_write = anyio.Event()
        self.may_write.set()
        self.writes = 0

    async def append(self, conversation_id: str, epoch: int, entries: Sequence[Entry], summary: Summary) -> None:
        self.writes += 1
        await self.may_write.wait()
        if self.fails:
            raise Internal("the disk is full")
        await super().append(conversation_id, epoch, entries, summary)


async def journal_on(store: MoodyStore, failures: list[HarnessError]) -> Journal:
    _, epoch = await store.create(record())
    assert epoch is not None
    return Journal(store, "c_1", epoch, Summary, failures.append)


@requirement("journal:writer:order")
async def test_what_was_noted_during_a_write_is_the_next_one_and_shown_after_it() -> None:
    store, shown = MoodyStore(), list[int]()
    async with store, anyio.create_task_group() as group:
        journal = await journal_on(store, [])
        group.start_soon(journal.run)
        store.may_write = anyio.Event()
        journal.note(delta(1), then=lambda: shown.append(1))
        await anyio.wait_all_tasks_blocked()
        for number in (2, 3):
            journal.note(delta(number), then=lambda number=number: shown.append(number))
        await anyio.wait_all_tasks_blocked()
        assert (shown, store.writes) == ([], 1)
        store.may_write.set()
        await journal.flushed()
        assert (shown, store.writes) == ([1, 2, 3], 2)
        assert flat(await store.entries("c_1")) == [delta(1), delta(2), delta(3)]
        await journal.close()


@requirement("journal:writer:failure")
async def test_everybody_whose_batch_failed_is_told_so_whoever_succeeds_meanwhile() -> None:
    store, failures = MoodyStore(), list[HarnessError]()
    outcomes: list[str] = []
    async with store:
        journal = await journal_on(store, failures)

        async def flush(number: int) -> None:
            journal.note(delta(number))
            try:
                await journal.flushed()
            except Internal:
                outcomes.append(f"{number} failed")
            else:
                outcomes.append(f"{number} is safe")

        store.fails, store.may_write = True, anyio.Event()
        async with anyio.create_task_group() as group:
            for number in (1, 2, 3):
                group.start_soon(flush, number)
            await anyio.wait_all_tasks_blocked()
            store.may_write.set()
        assert outcomes[0] == "1 failed" and sorted(outcomes) == ["1 failed", "2 failed", "3 failed"]
        assert journal.is_broken and failures
        store.fails = False
        await flush(4)
        assert outcomes[-1] == "4 is safe"
        assert flat(await store.entries("c_1")) == [delta(number) for number in (1, 2, 3, 4)]
        await journal.close()
        journal.note(delta(5))
        with pytest.raises(Internal, match="closed"):
            await journal.flushed()


@requirement("journal:writer:failure")
async def test_a_caller_that_goes_away_while_it_waits_leaves_the_record_whole() -> None:
    store = MoodyStore()
    async with store:
        journal = await journal_on(store, [])
        with anyio.CancelScope() as caller:
            journal.note(delta(1))
            caller.cancel()
            await journal.flushed()
        journal.note(delta(2))
        await journal.flushed()
        assert flat(await store.entries("c_1")) == [delta(1), delta(2)]
        await journal.close()


@requirement("journal:writer:message-is-durable-first")
async def test_the_peer_hears_of_a_message_when_it_is_durable_and_not_if_it_is_cancelled_before() -> None:
    store = MoodyStore()
    peer = Peer()
    async with open_house([[{"text": "heard"}]], peer, store=store) as llm, anyio.create_task_group() as group:
        ids = await begin(llm)
        await until(llm, ids, is_over)
        store.may_write = anyio.Event()
        group.start_soon(say, llm, ids[0])
        await anyio.wait_all_tasks_blocked()
        assert [one.what for one in peer.seen].count("message") == 1
        group.start_soon(llm.cancel_turn, ids[0], "t2")
        await anyio.wait_all_tasks_blocked()
        store.may_write.set()
        final, _ = await until(llm, (ids[0], "t2"), is_over)
        assert final.status == "cancelled"
        assert [one.what for one in peer.seen].count("message") == 1


@requirement("journal:writer:order")
async def test_an_answer_is_accepted_and_delivered_only_when_it_is_durable() -> None:
    store = MoodyStore()
    peer = Peer()
    script = [[{"calls": [{"name": "clock", "id": "c"}]}, {"text": "{{results.c}}"}]]
    async with open_house({"turns": script}, peer, store=store) as llm, anyio.create_task_group() as group:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
        store.may_write = anyio.Event()
        accepted = anyio.Event()

        async def answer() -> None:
            await llm.submit_responses(*ids, results(["c"], "noon"))
            accepted.set()

        group.start_soon(answer)
        await anyio.wait_all_tasks_blocked()
        assert (accepted.is_set(), peer.answers) == (False, [])
        assert [one.request_id for one in (await llm.poll_turn(*ids)).pending_requests] == ["c"]
        store.may_write.set()
        _, items = await until(llm, ids, is_over)
        assert accepted.is_set() and texts(items) == "noon"
