"""The trainer daemon: polls, starts a round when there is enough new code, watches it, never imports torch.

`supervisor` is its loop. It counts what is new (`backlog`), does what people asked for (`requests`), starts
the processes of a round (`child`, on several machines by `machines` and `node`), judges them (`judge`), has a
new champion tried (`canary`) and says what it is doing (`telling`).
"""
