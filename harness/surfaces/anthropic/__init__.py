"""The Anthropic Messages API as a surface: `/anthropic/v1/messages`, `count_tokens` and `models`.

To its clients, the real Claude Code among them, an agent is a model that calls the client's tools.
"""
