"""Text of others made fit for a terminal: services.core.inert, under the name that the commands use."""

from services.core.inert import inert, inert_lines

__all__ = ["inert", "inert_lines"]
