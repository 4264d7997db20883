"""What the CLI is told, as lines: answers to its control requests, requests of ours, messages. Pure."""

from __future__ import annotations

from connectors._json import JsonObject, json_line


class ControlWire:
    """Collects what is said until it is taken."""

    def __init__(self) -> None:
        self._outbox: list[bytes] = []
        self._asked = 0

    def data_to_send(self) -> bytes:
        """What was said since the last call."""
        data, self._outbox = b"".join(self._outbox), []
        return data

    def send(self, message: JsonObject) -> None:
        self._outbox.append(json_line(message))

    def ask(self, request: JsonObject, request_id: str | None = None) -> str:
        """A request of ours; gives the id its answer will have."""
        self._asked += 1
        request_id = request_id or f"{request['subtype']}_{self._asked}"
        self.send({"type": "control_request", "request_id": request_id, "request": request})
        return request_id

    def succeed(self, request_id: object, response: JsonObject) -> None:
        body = {"subtype": "success", "request_id": request_id, "response": response}
        self.send({"type": "control_response", "response": body})

    def refuse(self, request_id: object, error: str) -> None:
        body = {"subtype": "error", "request_id": request_id, "error": error}
        self.send({"type": "control_response", "response": body})
