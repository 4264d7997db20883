"""Surfaces that speak a model provider's wire: to their clients an agent is a model that calls the client's tools.

A wire reads its requests into a `ModelRequest` and writes the parts of a `Reply` (`exchange.py`); everything between
is here. `answering.endpoint` is the HTTP around both, `desk.Desk` finds the conversation, `refusals.py` has the codes.
"""
