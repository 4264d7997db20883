"""What holds for every store behind the journal."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from contract_tests.core.stores import (
    EVERY_ENTRY,
    STORES,
    Medium,
    delta,
    flat,
    full_record,
    medium,
    record,
)
from contract_tests.requirements import requirement
from harness.contract import HostRequest, OpenRequest, TextBlock, TextDelta, TurnOptions
from harness.contract.state import ConversationState
from harness.errors import ConversationInUse, Internal
from harness.store import Remembered, Store, Summary, TurnBegun

ODD = 'line\u2028para\u2029 nul\x00 quote" back\\ \U0001f680'


@pytest.fixture(params=STORES)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Medium:
    return medium(request.param, tmp_path)


@pytest.fixture
async def store(kept: Medium) -> AsyncGenerator[Store]:
    async with kept.open() as opened:
        yield opened


@requirement("store:client-key")
async def test_one_owner_has_one_conversation_per_client_key(store: Store) -> None:
    first, epoch = await store.create(record("c_1", client_key="k"))
    again, none = await store.create(record("c_2", client_key="k"))
    assert (first.conversation_id, epoch) == ("c_1", 1)
    assert (again.conversation_id, none) == ("c_1", None)

    other, _ = await store.create(record("c_3", owner="p", client_key="k"))
    assert other.conversation_id == "c_3"
    assert [await store.find_client_key(owner, "k") for owner in "op"] == [first, other]
    assert await store.find_client_key("o", "K") is None

    await store.create(record("c_4"))
    await store.create(record("c_5"))
    assert [one.conversation_id for one in await store.list_conversations("o")] == ["c_5", "c_4", "c_1"]


@requirement("store:client-key")
async def test_two_processes_that_begin_under_one_key_get_one_conversation(kept: Medium) -> None:
    async with kept.open() as here, kept.open() as there:
        mine, epoch = await here.create(record("c_1", client_key="k"))
        theirs, none = await there.create(record("c_2", client_key="k"))
        assert (mine.conversation_id, theirs.conversation_id) == ("c_1", "c_1")
        assert (epoch, none) == (1, None)


@requirement("store:owners")
async def test_what_another_owner_has_is_not_found(store: Store) -> None:
    await store.create(full_record())
    assert await store.find("c_1", "p") is None
    assert await store.list_conversations("p") == []
    assert await store.list_requests("p") == []
    assert await store.sizes("p") == {}


@requirement("store:fence")
async def test_only_the_last_who_claimed_may_append(store: Store) -> None:
    _, old = await store.create(record())
    new = await store.claim("c_1")
    assert old is not None and new > old
    with pytest.raises(ConversationInUse, match="'c_1'"):
        await store.append("c_1", old, [delta(1)], Summary(turns=9))
    await store.append("c_1", new, [delta(1)], Summary(turns=1))
    assert flat(await store.entries("c_1")) == [delta(1)]
    found = await store.find("c_1", "o")
    assert found is not None and found.summary.turns == 1


@requirement("store:fence")
async def test_what_a_live_process_holds_cannot_be_claimed_and_the_process_is_named(kept: Medium) -> None:
    async with kept.open() as here, kept.open() as there:
        _, epoch = await here.create(record())
        assert epoch is not None
        with pytest.raises(ConversationInUse, match=r"process [0-9]+") as caught:
            await there.claim("c_1")
        assert str(caught.value.detail["holder"]) in str(caught.value)
        assert list(await there.held()) == ["c_1"]
        await here.release("c_1", epoch)
        assert await there.held() == {}
        assert await there.claim("c_1") > epoch
        with pytest.raises(ConversationInUse):
            await here.append("c_1", epoch, [delta(1)], Summary())


@requirement("store:fence")
async def test_a_late_release_does_not_take_it_from_the_next_holder(kept: Medium) -> None:
    async with kept.open() as here, kept.open() as there:
        _, epoch = await here.create(record())
        assert epoch is not None
        await here.release("c_1", epoch)
        await there.claim("c_1")
        await here.release("c_1", epoch)
        with pytest.raises(ConversationInUse):
            await here.claim("c_1")


@requirement("store:fence")
async def test_leaving_a_store_frees_what_it_held(kept: Medium) -> None:
    async with kept.open() as there:
        async with kept.open() as here:
            await here.create(record())
        assert await there.held() == {}
        assert await there.abandoned() == []
        await there.claim("c_1")


@requirement("store:append:all-or-nothing")
async def test_an_append_that_is_fenced_leaves_neither_entries_nor_a_new_summary(store: Store) -> None:
    _, epoch = await store.create(record())
    assert epoch is not None
    await store.append("c_1", epoch, [delta(1)], Summary(turns=1))
    await store.claim("c_1")
    with pytest.raises(ConversationInUse):
        await store.append("c_1", epoch, [delta(2), delta(3, "y" * 100_000)], Summary(turns=2))
    assert flat(await store.entries("c_1")) == [delta(1)]
    found = await store.find("c_1", "o")
    assert found is not None and found.summary.turns == 1


@requirement("store:round-trip")
async def test_every_kind_of_entry_comes_back_as_it_was(kept: Medium) -> None:
    async with kept.open() as store:
        _, epoch = await store.create(full_record())
        assert epoch is not None
        await store.append("c_1", epoch, EVERY_ENTRY[:3], full_record().summary)
        await store.append("c_1", epoch, EVERY_ENTRY[3:], full_record().summary)
    async with kept.open() as store:
        assert flat(await store.entries("c_1")) == EVERY_ENTRY
        assert await store.find("c_1", "o") == full_record()
        assert await store.remembered("c_1") == [one.record for one in EVERY_ENTRY if isinstance(one, Remembered)]


@requirement("store:round-trip")
async def test_strings_come_back_letter_by_letter(store: Store) -> None:
    lone = json.loads('"\\ud800 \\udfff"')
    arguments = '{"a":"\\ud800\\u2028","b":1.0,"c":1e400,"d":0.10}'
    request = HostRequest(request_id="c", kind="tool_call", call_id="c", peer_request_id="1", arguments_json=arguments)
    waiting = OpenRequest(conversation_id="c_1", turn_id="t1", request=request)
    entries = [
        Remembered({ODD: lone, "$harness:blob": "looks like ours"}),
        Remembered({"$harness:blob": "looks even more like ours"}),
        Remembered([{"$harness:blob": "and so does this"}, lone + "x" * 20_000]),
        TurnBegun("t1", [TextBlock(text=ODD)], TurnOptions(), 0),
        delta(1, ODD),
        delta(2, ODD * 3000),
    ]
    _, epoch = await store.create(record())
    assert epoch is not None
    await store.append("c_1", epoch, entries, Summary(first_message=ODD, open_requests=(waiting,)))
    assert flat(await store.entries("c_1")) == entries
    [found] = await store.list_requests("o")
    assert found.request.arguments_json == arguments
    kept = await store.find("c_1", "o")
    assert kept is not None and kept.summary.first_message == ODD


@requirement("store:blobs")
async def test_a_large_string_stands_once_and_goes_with_its_last_user(tmp_path: Path) -> None:
    picture = "QUJD" * 500_000
    path = tmp_path / "state" / "journal.db"
    async with medium("sqlite", tmp_path).open() as store:
        for one in ("c_1", "c_2"):
            _, epoch = await store.create(record(one))
            assert epoch is not None
            for number in range(5):
                await store.append(one, epoch, [delta(number + 1, picture)], Summary())
    async with medium("sqlite", tmp_path).open() as store:
        assert path.stat().st_size < 1.5 * len(picture)
        await store.delete("c_1")
        assert flat(await store.entries("c_2")) == [delta(number + 1, picture) for number in range(5)]
        await store.delete("c_2")
    assert path.stat().st_size < len(picture) / 4, "deleting makes room on the disk"


@requirement("store:lists")
async def test_lists_have_the_most_recently_used_first_and_all_that_waits(store: Store) -> None:
    epochs = {}
    for number, name in enumerate(("c_1", "c_2", "c_3")):
        _, epochs[name] = await store.create(replace(record(name), summary=Summary(updated_at=number)))
    request = HostRequest(request_id="x", kind="approval", peer_request_id="1")
    waiting = OpenRequest(conversation_id="c_1", turn_id="t1", request=request)
    summary = Summary(
        updated_at=10, turns=1, first_message="hi", state=ConversationState.PARKED, open_requests=(waiting,)
    )
    await store.append("c_1", epochs["c_1"] or 0, [delta(1)], summary)
    found = await store.list_conversations("o")
    assert [one.conversation_id for one in found] == ["c_1", "c_3", "c_2"]
    assert found[0].summary == summary
    assert await store.list_requests("o") == [waiting]
    await store.append("c_1", epochs["c_1"] or 0, [], replace(summary, open_requests=()))
    assert await store.list_requests("o") == []


@requirement("store:lists")
async def test_items_are_read_by_turn_and_number(store: Store) -> None:
    _, epoch = await store.create(record())
    assert epoch is not None
    await store.append("c_1", epoch, [delta(number) for number in range(1, 6)], Summary())
    await store.append("c_1", epoch, [delta(1, "other", "t2")], Summary())
    assert [item.sequence_no for item in await store.items("c_1", "t1", 2, 2)] == [3, 4]
    assert [item.sequence_no for item in await store.items("c_1", "t1", 4, 100)] == [5]
    assert await store.items("c_1", "t2", 0, 100) == [TextDelta(sequence_no=1, at=0, text="other")]
    assert await store.items("c_1", "t3", 0, 100) == []


@requirement("store:abandoned")
async def test_a_turn_that_was_given_back_unfinished_counts_as_abandoned(kept: Medium) -> None:
    async with kept.open() as there:
        async with kept.open() as here:
            _, epoch = await here.create(record("c_1"))
            await here.create(record("c_2"))
            assert epoch is not None
            await here.append("c_1", epoch, [], Summary(turn_is_running=True))
            assert await there.abandoned() == []
        assert [one.conversation_id for one in await there.abandoned()] == ["c_1"]
        await there.claim("c_1")
        assert await there.abandoned() == []


DYING = """
import sys
from pathlib import Path
import anyio
from contract_tests.core.stores import medium, record
from harness.store import Summary

async def main():
    async with medium("sqlite", Path(sys.argv[1])).open() as store:
        await store.create(record("c_1", owner="o"))
        _, epoch = await store.create(record("c_2", owner="p"))
        await store.append("c_2", epoch, [], Summary(turn_is_running=True))
        print("ready", flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


@requirement("store:abandoned")
async def test_what_a_killed_process_held_is_abandoned_and_free(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with (
            await anyio.open_process([sys.executable, "-c", DYING, str(tmp_path)], stderr=None) as process,
            medium("sqlite", tmp_path).open() as store,
        ):
            assert process.stdout is not None
            await process.stdout.receive()
            assert set(await store.held()) == {"c_1", "c_2"}
            with pytest.raises(ConversationInUse, match=f"process {process.pid} "):
                await store.claim("c_2")
            process.kill()
            await process.wait()
            assert {one.conversation_id for one in await store.abandoned()} == {"c_1", "c_2"}
            await store.claim("c_1")
            assert [one.conversation_id for one in await store.abandoned()] == ["c_2"]
    async with medium("sqlite", tmp_path).open():
        locks = list((tmp_path / "state" / "journal.db.holders").iterdir())
        assert len(locks) == 1, "the lock file of the dead process is gone"


@requirement("store:delete")
async def test_a_deleted_conversation_is_gone_and_its_key_is_free(store: Store) -> None:
    _, epoch = await store.create(record("c_1", client_key="k"))
    assert epoch is not None
    await store.append("c_1", epoch, EVERY_ENTRY, Summary())
    await store.create(record("c_2"))
    await store.delete("c_1")
    await store.delete("c_1")
    assert await store.find("c_1", "o") is None
    assert await store.entries("c_1") == []
    assert [one.conversation_id for one in await store.list_conversations("o")] == ["c_2"]
    with pytest.raises(ConversationInUse):
        await store.append("c_1", epoch, [delta(1)], Summary())
    with pytest.raises(ConversationInUse, match="deleted"):
        await store.claim("c_1")
    again, epoch = await store.create(record("c_3", client_key="k"))
    assert (again.conversation_id, epoch) == ("c_3", 1)


@requirement("store:lists")
async def test_sizes_say_what_a_conversation_takes(store: Store) -> None:
    for name, size in (("c_1", 10), ("c_2", 100_000)):
        _, epoch = await store.create(record(name))
        await store.append(name, epoch or 0, [delta(1, "x" * size)], Summary())
    sizes = await store.sizes("o")
    assert sizes["c_2"] - sizes["c_1"] > 90_000


@requirement("store:loop")
async def test_a_large_append_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    """While it is written, other tasks run; a small one is written without a thread."""
    async with medium("sqlite", tmp_path).open() as store, AsyncExitStack() as stack:
        _, epoch = await store.create(record())
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await anyio.lowlevel.checkpoint()

        group = await stack.enter_async_context(anyio.create_task_group())
        group.start_soon(count)
        await anyio.lowlevel.checkpoint()
        before = turns
        entries = [Remembered({"n": number, "text": ODD * 100}) for number in range(2000)]
        await store.append("c_1", epoch or 0, entries, Summary())
        assert turns - before > 10
        group.cancel_scope.cancel()


@requirement("store:not-open")
async def test_a_store_that_is_not_open_says_so(kept: Medium) -> None:
    if kept.kind == "memory":
        pytest.skip("a store in memory is always at hand")
    store = kept.open()
    with pytest.raises(Internal, match="before it was opened"):
        await store.list_conversations("o")
