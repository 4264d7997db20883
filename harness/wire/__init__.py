"""The native wire as bytes: JSON text, server-sent events, bodies and errors. Shared by server and client; no I/O."""
