"""Surfaces that speak a model provider's wire: to their clients an agent is a model that calls the client's tools."""
