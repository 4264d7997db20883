"""Stand-ins for what a peer talks to, and for the peers themselves."""
