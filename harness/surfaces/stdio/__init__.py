"""The operations as JSON-RPC 2.0, a message a line, for a program that starts `harness serve --stdio` itself."""
