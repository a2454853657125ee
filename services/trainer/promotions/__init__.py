"""The moves of a track's champion: promoted, rolled back, rejected, pinned; each an append-only row.

`line` says what a track's moves come to, `rows` reads and writes them, `champions` makes them: by hand, by
the gate, by a canary, or because something was forgotten.
"""
