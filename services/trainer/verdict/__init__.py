"""Is it worth it? The base model against retrieval and training, on held-out code of one's own."""
