"""Ratchet's services; `services.core` is what they share."""

__version__ = "0.1.0"  # as in pyproject.toml
