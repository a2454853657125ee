"""What runs in a cage: standard library alone, and nothing of Ratchet beyond this package."""
