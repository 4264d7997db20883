"""The host's side: where tools come from, who is asked, and the loop that runs a turn to its end.

Nothing is imported here, so that `from harness import tool` in a tools file stays light.
"""
