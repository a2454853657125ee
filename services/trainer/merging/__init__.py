"""An adapter and its base made one model, in the numbers that the base is stored in."""
