"""UJMW 1.1 (Unified JSON Message Wrapper): the contract for its .NET clients, by POST and long polling."""
