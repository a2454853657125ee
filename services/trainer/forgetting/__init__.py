"""Taking code back: out of what comes in, out of the ledger, out of the adapters that serve.

Nothing here imports torch but `check`, which runs in a process of its own.
"""
