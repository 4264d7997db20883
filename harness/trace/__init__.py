"""What happened, for people: never with a secret in it."""
