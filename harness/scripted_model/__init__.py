"""A model that follows a script, on loopback, in a vendor's dialect: for the demo and for tests with real CLIs."""

from harness.scripted_model.dialect import PastCall
from harness.scripted_model.received import ReceivedRequest
from harness.scripted_model.script import ScriptedCall, ScriptedError, ScriptedUsage, ScriptEntry, read_script
from harness.scripted_model.server import ScriptedModel, open_scripted_model

__all__ = [
    "PastCall",
    "ReceivedRequest",
    "ScriptEntry",
    "ScriptedCall",
    "ScriptedError",
    "ScriptedModel",
    "ScriptedUsage",
    "open_scripted_model",
    "read_script",
]
