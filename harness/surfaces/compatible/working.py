"""One request at work: from the conversation that it belongs to, to the end of its reply."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import anyio

from harness.contract.content import as_content
from harness.contract.options import ConversationOptions, HistoryMessage, HistoryRole
from harness.contract.requests import HostResponse
from harness.contract.tools import ToolDescriptor
from harness.contract.value import Label
from harness.errors import HarnessError, Internal, InvalidArgument, UnknownConversation, unwrapped
from harness.surfaces.call import OwnedLLM, Served
from harness.surfaces.compatible.adopting import adopted, is_last_reply, waiting_for
from harness.surfaces.compatible.asides import response_of
from harness.surfaces.compatible.exchange import ModelRequest, ReplyFailed, Terms
from harness.surfaces.compatible.fit import Fitted, fitted, offered
from harness.surfaces.compatible.growing import Grown, Growth
from harness.surfaces.compatible.models import model_names, named_model
from harness.surfaces.compatible.reading import TurnReading
from harness.surfaces.compatible.refusals import refused, unknown_model, unsupported
from harness.surfaces.compatible.reply import Reply
from harness.surfaces.compatible.reply_ids import ReplyId
from harness.surfaces.compatible.room import Room
from harness.surfaces.compatible.settings import SideRequests
from harness.surfaces.compatible.threads import Kind, New, Thread, check_answers, thread_for
from harness.surfaces.compatible.tips import tip

logger = logging.getLogger(__name__)

GO_ON = "Go on with these tool results."
"""What a peer is told that starts from a history which ends with them."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A request as this server understands it."""

    options: ConversationOptions
    tools: list[ToolDescriptor]
    fit: Fitted
    kind: Kind
    new: New


@dataclass(frozen=True, slots=True)
class Work:
    """A request, its room and the reply that is to grow. `run` never raises, save when it is cancelled."""

    served: Served
    surface: str
    room: Room
    llm: OwnedLLM
    request: ModelRequest
    terms: Terms
    reply: Reply

    async def run(self) -> None:
        settings = self.served.compatible
        asking: Thread | None = None
        try:
            asking = await self._answer()
        except HarnessError as error:
            self.reply.fail(error)
        except RecursionError:
            self.reply.fail(refused("something in this request is nested too deeply"))
        except Exception:
            logger.exception("a reply of the surface '%s' failed", self.surface)
            self.reply.fail(Internal("an internal error; the server's log has the details"))
        finally:
            self.reply.fail(Internal("this server is stopping"))  # only where nothing has ended it
            until = anyio.current_time() + settings.recorded_seconds
            self.room.record(self.request, self.terms, self.reply, until, settings.max_recorded)
        if asking is not None:
            await self._cancel_when_untold(asking)

    async def _answer(self) -> Thread | None:
        """Lets the reply grow to its end; gives the conversation if calls of it wait for the client now."""
        wanted = await self._wanted()
        thread = await self._found(wanted)
        is_new = thread is None
        if thread is None:
            thread = await self._begun(wanted)
        elif thread.is_busy:  # it was found before something was waited for
            check_answers(thread, wanted.new)
        thread.is_busy = True
        try:
            ignored = await self._take(thread, wanted)
        except Exception as error:
            thread.is_busy = False
            if is_new:
                await self._end(thread)
            elif isinstance(error, UnknownConversation):  # somebody has deleted it, and it leads nowhere any more
                self.room.threads.pop(thread.conversation_id, None)
                if self.terms.conversation_id is None:
                    return await self._answer()
            raise
        tips, thread.tips = thread.tips, ()
        assert thread.reading is not None
        self.reply.begin(ReplyId(thread.conversation_id, thread.reading.turn_id, thread.reading.seen), ignored)
        try:
            grown = await self._grow(thread)
        except Exception:
            await self._end(thread)
            raise
        finally:  # a server that stops leaves the turn to the house, which may keep it for the next process
            thread.is_busy = False
            thread.touched_at = anyio.current_time()
        thread.waiting = grown.waiting
        thread.tips = self._tips(wanted.new, tips)
        thread.last_reply = self.reply.reply_id
        has_failed = isinstance(grown.end, ReplyFailed)
        is_left = has_failed or (is_new and self._is_answered_only)
        if is_left:
            self.room.threads.pop(thread.conversation_id, None)
        if has_failed:
            self.room.forget_reply(self.request, self.terms, self.reply)
        self.reply.add(grown.end)
        if is_left:
            await ended(self.llm, thread)
        return thread if grown.waiting and not is_left else None

    async def _wanted(self) -> _Wanted:
        """Raises:
        InvalidArgument: no such model, or something that it cannot do and that changes the meaning.
        """
        named = named_model(self.request.model, self.served.connectors)
        options = ConversationOptions(connector=named.connector, model=named.model)
        try:
            capabilities = await self.llm.get_capabilities(options)
        except InvalidArgument:
            if self.served.connectors and ":" not in named.connector:
                raise  # the name is right, so something else is wrong
            raise unknown_model(self.request.model, model_names(self.served.connectors)) from None
        fit = fitted(self.request, capabilities)
        is_parallel = self.served.compatible.parallel_calls
        tools = offered(self.request, capabilities) if is_parallel else list(self.request.tools)
        return _Wanted(options, tools, fit, Kind.of(self.request, fit.output_schema_json), New.of(self.request))

    # the conversation

    async def _found(self, wanted: _Wanted) -> Thread | None:
        """The conversation that the request continues."""
        named = self.terms.conversation_id
        if named is not None:
            thread = self.room.threads.get(named) or await self._adopted(named, wanted)
            check_answers(thread, wanted.new)
            return thread
        await self._recall(wanted)
        thread = thread_for(self.room.threads.values(), self.request, wanted.new, wanted.kind)
        if thread is None and wanted.new.message.tool_results:
            call_ids = {one.call_id for one in wanted.new.message.tool_results}
            waiting = await waiting_for(self.llm, call_ids, self._label)
            if waiting is not None and not self._is_at_work(waiting):
                thread = await self._adopted(waiting, wanted)
                check_answers(thread, wanted.new)
        return thread

    async def _recall(self, wanted: _Wanted) -> None:
        """A reply that nobody remembers is found by its id, where nothing was said since."""
        previous = self.request.previous_reply
        reply_id = None if previous is None else ReplyId.read(previous)
        if reply_id is None or reply_id.conversation_id in self.room.threads:
            return
        if await is_last_reply(self.llm, reply_id, self._label):
            thread = await self._adopted(reply_id.conversation_id, wanted)
            thread.last_reply = thread.last_reply or previous  # another request may have gone on with it meanwhile

    def _is_at_work(self, conversation_id: str) -> bool:
        known = self.room.threads.get(conversation_id)
        return known is not None and known.is_busy

    async def _adopted(self, conversation_id: str, wanted: _Wanted) -> Thread:
        """One of our own is taken for what the client says that it is; nobody else can tell any more."""
        thread = await adopted(self.llm, conversation_id, self._label)
        if not thread.is_foreign:
            thread.kind = wanted.kind
        return self.room.threads.setdefault(conversation_id, thread)

    async def _begun(self, wanted: _Wanted) -> Thread:
        """A new conversation that knows the history; results that nobody here waits for belong to it."""
        if not self.request.tools and self.served.compatible.side_requests == SideRequests.REFUSE:
            raise refused("a request without tools that continues no conversation is not served here")
        results = wanted.new.message.tool_results
        seed = [HistoryMessage(role=HistoryRole.USER, tool_results=results)] if results else []
        options = wanted.options.model_copy(
            update={
                "system_prompt": self.request.system_prompt,
                "tools": wanted.tools,
                "history": [*wanted.new.history, *seed],
                "output_schema_json": wanted.fit.output_schema_json,
                "labels": [self._label],
            }
        )
        thread = Thread(await self.llm.begin_conversation(options), wanted.kind)
        self.room.threads[thread.conversation_id] = thread
        return thread

    @property
    def _label(self) -> Label:
        return Label(name="surface", value=self.surface)

    @property
    def _is_answered_only(self) -> bool:
        return not self.request.tools and self.served.compatible.side_requests == SideRequests.ANSWER

    async def _end(self, thread: Thread) -> None:
        """A turn that broke leaves the peer with a history that no client has; the next request brings its own."""
        self.room.threads.pop(thread.conversation_id, None)
        await ended(self.llm, thread)

    # the turn

    async def _take(self, thread: Thread, wanted: _Wanted) -> list[str]:
        """Answers what waits, or begins a turn; gives the names of what was ignored.

        Raises:
            HarnessError: the conversation refused it; nothing was changed.
        """
        ignored = [*wanted.fit.ignored, *_differences(thread.kind, wanted.kind, self.request.words)]
        schema_json = self.request.options.output_schema_json
        if thread.waiting and thread.reading is not None:
            if schema_json != thread.reading.schema_json:
                raise unsupported(self._word("output_schema_json"), "the turn that these results belong to has another")
            responses = _responses(thread, wanted.new)
            await self.llm.submit_responses(thread.conversation_id, thread.reading.turn_id, responses)
            thread.waiting = {}
            return ignored
        content = wanted.new.message.content or as_content(GO_ON)
        turn_id = await self.llm.submit_user_message(thread.conversation_id, content, wanted.fit.turn)
        thread.reading = TurnReading(turn_id, schema_json)
        return ignored

    def _word(self, name: str) -> str:
        return self.request.words.get(name, name)

    async def _grow(self, thread: Thread) -> Grown:
        assert thread.reading is not None
        settings = self.served.compatible
        growth = Growth(
            self.llm,
            thread.conversation_id,
            thread.reading,
            self.reply,
            settings.quiet_seconds,
            self.terms.requests_as_calls,
        )
        grown: Grown | None = None
        with unwrapped():
            async with anyio.create_task_group() as group:
                group.start_soon(self._cancel_when_left, thread.conversation_id, thread.reading.turn_id)
                grown = await growth.run()
                group.cancel_scope.cancel()
        assert grown is not None
        return grown

    async def _cancel_when_left(self, conversation_id: str, turn_id: str) -> None:
        """A client says that it wants no answer any more by going away."""
        settings = self.served.compatible
        await self.reply.left(settings.grace_seconds, settings.stream_grace_seconds)
        self.room.forget_reply(self.request, self.terms, self.reply)
        await self.llm.cancel_turn(conversation_id, turn_id)

    async def _cancel_when_untold(self, thread: Thread) -> None:
        """Calls that no client has heard of would wait until the conversation is abandoned."""
        settings, waiting = self.served.compatible, thread.waiting
        await self.reply.left(settings.grace_seconds, settings.stream_grace_seconds)
        if self.reply.was_told or thread.waiting is not waiting or thread.reading is None:
            return
        self.room.forget_reply(self.request, self.terms, self.reply)
        self.room.threads.pop(thread.conversation_id, None)
        if thread.is_foreign:
            await self.llm.cancel_turn(thread.conversation_id, thread.reading.turn_id)
        else:
            await ended(self.llm, thread)

    def _tips(self, new: New, before: Collection[str]) -> frozenset[str]:
        """Where the client says that the conversation stands, now that it has this reply."""
        starts = before if self.request.previous_reply is not None else [tip(new.history)]
        return frozenset(tip([new.message, said], start) for start in starts for said in self.reply.messages())


async def ended(llm: OwnedLLM, thread: Thread) -> None:
    """The conversation's peer ends; whoever else has ended or deleted it has done the same.

    One that was begun elsewhere is not ours to end.
    """
    if thread.is_foreign:
        return
    try:
        await llm.end_conversation(thread.conversation_id)
    except HarnessError as error:
        logger.debug("conversation '%s' was not ended: %s", thread.conversation_id, error)


def _responses(thread: Thread, new: New) -> list[HostResponse]:
    """One for each call that waits. Words beside the results are read with the last one: the turn takes no message.

    Raises:
        InvalidArgument: the result of a reserved tool that answers nothing.
    """
    results = list(new.message.tool_results)
    if new.message.content:
        last = results.pop()
        results.append(last.model_copy(update={"content": [*last.content, *new.message.content]}))
    return [response_of(thread.waiting[result.call_id], result) for result in results]


def _differences(fixed: Kind | None, wanted: Kind, words: Mapping[str, str]) -> list[str]:
    """What a running conversation cannot change any more, in the client's words."""
    if fixed is None or fixed == wanted:
        return []
    names = {"model": "model", "system_prompt": "system", "tools": "tools"}
    return [words.get(name, word) for name, word in names.items() if getattr(fixed, name) != getattr(wanted, name)]
