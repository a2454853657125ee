"""Receipts: what an adapter was trained on and judged by, line by line, to be checked without a database."""
