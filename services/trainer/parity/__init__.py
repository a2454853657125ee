"""Parity: whether an adapter answers alike on the quantised base, on the full one, merged, and served."""
