"""Compares the index with what a user would install instead, each in a process of its own: `make bench-peers`."""
