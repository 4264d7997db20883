"""The tables of the journal and how older files come to them. A migration, once released, is never changed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from harness.errors import Internal

_MIGRATIONS = (
    """
    CREATE TABLE conversations (
        conversation_id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        client_key TEXT,
        connector TEXT NOT NULL,
        options TEXT NOT NULL,
        capabilities TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        state TEXT NOT NULL,
        turns INTEGER NOT NULL,
        first_message TEXT,
        turn_is_running INTEGER NOT NULL,
        open_requests TEXT NOT NULL,
        holder TEXT,
        epoch INTEGER NOT NULL,
        UNIQUE (owner, client_key)
    );
    CREATE INDEX conversations_by_use ON conversations (owner, updated_at);
    CREATE INDEX conversations_by_holder ON conversations (holder) WHERE holder IS NOT NULL;
    CREATE TABLE entries (
        conversation_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        kind TEXT NOT NULL,
        turn_id TEXT,
        sequence_no INTEGER,
        body TEXT NOT NULL,
        has_blobs INTEGER NOT NULL,
        PRIMARY KEY (conversation_id, number)
    ) WITHOUT ROWID;
    CREATE INDEX entries_by_turn ON entries (conversation_id, turn_id, sequence_no) WHERE kind = 'item';
    CREATE TABLE blobs (digest TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE blob_uses (digest TEXT, conversation_id TEXT, PRIMARY KEY (digest, conversation_id)) WITHOUT ROWID;
    """,
)
VERSION = len(_MIGRATIONS)


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Brings the file to `VERSION`, in one transaction.

    Raises:
        Internal: a newer version of this program wrote it.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        found = int(db.execute("PRAGMA user_version").fetchone()[0])
        if found > VERSION:
            raise Internal(
                f"the journal '{path}' was written by a newer version of this program (its schema is {found}, here"
                f" {VERSION}): upgrade the program, or name another file",
                path=str(path),
            )
        for migration in _MIGRATIONS[found:]:
            for statement in migration.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
