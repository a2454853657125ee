"""Which contents a round trains on, and by which it is judged.

`candidates` are what may be in it, `choice` chooses among them, with `shares` and `held_out`, both pure;
`snapshots` puts it together, stores what was chosen and reads it again.
"""
