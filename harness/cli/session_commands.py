"""What `harness sessions` does: reads the journal itself, so that no peer and no connector is needed for it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import anyio
import typer

from harness.cli.configuration import read_configuration
from harness.cli.failures import complain, exit_code_of
from harness.cli.journals import journal_at
from harness.cli.sessions import Transcript
from harness.cli.terminal import printable
from harness.cli.transcripts import TranscriptFormat, iso_time, transcript
from harness.cli.values import age_ms, characters
from harness.connector import Reaps, Weighs
from harness.contract.capabilities import LlmCapabilities, Resume
from harness.contract.state import ConversationExport
from harness.contract.value import JsonValue
from harness.conversation.recovery import past_of
from harness.errors import ConfigError, HarnessError, InvalidArgument, UnknownConversation
from harness.house import wall_clock
from harness.local import LOCAL_OWNER, info_of, is_overdue
from harness.registry import Registry
from harness.store import ConversationRecord, Store
from harness.store.pruning import to_forget

T = TypeVar("T")


def run_list(store: str | None, config: Path | None, *, limit: int, as_json: bool) -> None:
    rows = _with_journal(store, config, lambda journal: _rows(journal, limit))
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        typer.echo(printable(_line(row)))


def run_transcript(
    conversation_id: str, form: Transcript, file: Path | None, store: str | None, config: Path | None
) -> None:
    """Raises:
    UnknownConversation: the journal has none of this id.
    ConfigError: the file cannot be written.
    """
    found = _with_journal(store, config, lambda journal: _export(journal, conversation_id))
    text = transcript(found, TranscriptFormat(form))
    if file is None:
        typer.echo(text if form == Transcript.JSONL else printable(text), nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write '{file}': {error.strerror}", file=str(file), key="file") from error


def run_delete(conversation_ids: Sequence[str], store: str | None, config: Path | None, *, as_json: bool) -> None:
    deleted: list[str] = []

    async def delete(journal: Store) -> None:
        for conversation_id in conversation_ids:
            await _forget(journal, await _record(journal, conversation_id))
            deleted.append(conversation_id)

    try:
        _with_journal(store, config, delete)
    except HarnessError as error:
        if not as_json:
            _tell_deleted(deleted)
            raise
        code = exit_code_of(error.code)
        told = {"code": error.code, "message": error.message}
        typer.echo(json.dumps({"error": told, "deleted": deleted, "exit_code": code}, ensure_ascii=False))
        complain(error.message)
        raise typer.Exit(code) from None
    if as_json:
        typer.echo(json.dumps({"deleted": deleted}))
    else:
        _tell_deleted(deleted)


def run_prune(
    older_than: str | None,
    max_size: str | None,
    store: str | None,
    config: Path | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Raises:
    InvalidArgument: nothing says what is to go.
    """
    if older_than is None and max_size is None:
        raise InvalidArgument("say what is to go: --older-than 30d, --max-size 500M, or both")
    ttl_ms = age_ms(older_than, "--older-than")
    max_chars = characters(max_size, "--max-size")

    async def prune(journal: Store) -> list[str]:
        records = await journal.list_conversations(LOCAL_OWNER)
        held, sizes = await journal.held(), await journal.sizes(LOCAL_OWNER)
        chosen = to_forget(records, sizes, now=wall_clock(), held=held, ttl_ms=ttl_ms, max_chars=max_chars)
        gone: list[str] = []
        for record in chosen:
            try:
                if not dry_run:
                    await _forget(journal, record)
            except HarnessError as error:  # somebody has just opened it
                complain(error.message)
            else:
                gone.append(record.conversation_id)
        return gone

    gone = _with_journal(store, config, prune)
    if as_json:
        typer.echo(json.dumps({"deleted": gone, "dry_run": dry_run}))
    elif dry_run:
        for conversation_id in gone:
            typer.echo(f"would delete {conversation_id}")
    else:
        _tell_deleted(gone)


# --- inside


def _with_journal(typed: str | None, config: Path | None, work: Callable[[Store], Awaitable[T]]) -> T:
    choice = read_configuration(config).journal

    async def run() -> T:
        async with journal_at(typed, choice) as journal:
            return await work(journal)

    return anyio.run(run)


async def _rows(journal: Store, limit: int) -> list[dict[str, JsonValue]]:
    held = await journal.held()
    records = await journal.list_conversations(LOCAL_OWNER)
    registry, now = Registry(), wall_clock()
    return [await _row(journal, record, record.conversation_id in held, registry, now) for record in records[:limit]]


async def _row(
    journal: Store, record: ConversationRecord, is_held: bool, registry: Registry, now: int
) -> dict[str, JsonValue]:
    about = info_of(record, now)
    status = _status(record, is_held, now)
    can_go_on = status != "interrupted" or _resume_of(record) == Resume.EXACT
    row: dict[str, JsonValue] = {
        "id": about.conversation_id,
        "status": status,
        "connector": about.connector,
        "model": about.model,
        "created": iso_time(about.created_at),
        "updated": iso_time(about.updated_at),
        "turns": about.turns,
        "first_message": about.first_message,
        "pending_requests": about.pending_requests if can_go_on else 0,
    }
    connector = _connector(registry, record.connector)
    if isinstance(connector, Weighs):
        remembered = await journal.remembered(record.conversation_id)
        resident = await anyio.to_thread.run_sync(connector.resident_bytes, remembered)
        if resident:
            row["resident_bytes"] = resident
    return row


def _status(record: ConversationRecord, is_held: bool, now: int) -> str:
    """Of its turn: `running`, `awaiting_host`, `interrupted` when its process died; else the conversation's state."""
    if not record.summary.turn_is_running:
        return str(record.summary.state if is_held or record.summary.state != "open" else "parked")
    if not is_held:
        return "interrupted"
    waits = any(not is_overdue(one, now) for one in record.summary.open_requests)
    return "awaiting_host" if waits else "running"


def _resume_of(record: ConversationRecord) -> Resume | str:
    return LlmCapabilities.model_validate_json(record.capabilities_json).resume


def _line(row: dict[str, JsonValue]) -> str:
    extras = [f"{row['turns']} turn(s)"]
    if row["pending_requests"]:
        extras.append(f"{row['pending_requests']} waiting")
    if "resident_bytes" in row:
        extras.append(f"{row['resident_bytes'] // 1_000_000} MB")
    first = " ".join(str(row["first_message"] or "").split())
    shown = f"{first[:57]}..." if len(first) > 60 else first
    who = row["connector"] if row["model"] is None else f"{row['connector']} {row['model']}"
    return f"{row['id']}  {row['updated']}  {row['status']}  {who}  {', '.join(extras)}  {shown}"


def _connector(registry: Registry, name: str) -> object | None:
    try:
        return registry.connector(name)
    except HarnessError:  # it was installed when the conversation was begun
        return None


async def _record(journal: Store, conversation_id: str) -> ConversationRecord:
    record = await journal.find(conversation_id, LOCAL_OWNER)
    if record is None:
        raise UnknownConversation(f"no conversation '{conversation_id}'; 'harness sessions list' names them")
    return record


async def _export(journal: Store, conversation_id: str) -> ConversationExport:
    record = await _record(journal, conversation_id)
    past = past_of(await journal.entries(conversation_id))
    turns = [turn.transcript() for turn in past.turns.values()]
    return ConversationExport(conversation=info_of(record, wall_clock()), turns=turns)


async def _forget(journal: Store, record: ConversationRecord) -> None:
    """Deletes what nobody has open, and ends what a crash may have left of it."""
    await journal.claim(record.conversation_id)
    connector = _connector(Registry(), record.connector)
    if isinstance(connector, Reaps):
        await connector.reap(await journal.remembered(record.conversation_id))
    await journal.delete(record.conversation_id)


def _tell_deleted(conversation_ids: Sequence[str]) -> None:
    for conversation_id in conversation_ids:
        typer.echo(f"deleted {conversation_id}")
