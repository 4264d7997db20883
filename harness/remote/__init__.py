"""Another process's harness over HTTP."""

from harness.remote.remote_harness import RemoteHarness

__all__ = ["RemoteHarness"]
