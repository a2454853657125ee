"""The local stack: what `ratchet up` starts, how PostgreSQL and services are watched, and how they end."""
