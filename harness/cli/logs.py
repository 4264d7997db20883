"""What our own log lines look like at a terminal: short, and a traceback only for those who ask for more."""

from __future__ import annotations

import logging
import os

from harness.cli.terminal import printable
from harness.trace.redaction import Redactor, secrets_of_environment


class _Printable(logging.Formatter):
    """A log line may quote what a model, a tool or a provider said."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(Redactor(secrets_of_environment(os.environ)).text(super().format(record)))


class _WithoutTraceback(_Printable):
    def formatException(self, ei: object) -> str:
        return ""

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(super().format(record).split())


def set_up_logs(*, verbose: bool) -> None:
    """Warnings to stderr, one line each; with `verbose` everything, with tracebacks."""
    handler = logging.StreamHandler()
    if verbose:
        handler.setFormatter(_Printable("harness: %(levelname)s %(name)s: %(message)s"))
    else:
        handler.setFormatter(_WithoutTraceback("harness: %(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
