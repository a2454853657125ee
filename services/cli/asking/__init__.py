"""Whom a command asks: the database, the processor's judges, a model's process; of which track and file."""
