"""What Ratchet is doing, to be looked at: /health, /metrics and a page. It can only read."""
