"""Bring code in, and see what became of it."""
