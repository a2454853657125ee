"""Published adapters, and the moves of a champion by hand."""
