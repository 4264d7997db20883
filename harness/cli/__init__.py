"""The command `harness`: one file per command, each imports what it needs only when it runs."""

from harness.cli.app import main

__all__ = ["main"]
