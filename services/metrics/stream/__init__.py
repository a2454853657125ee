"""What happens, told as it happens: /api/v1/stream, one listening connection for all who listen."""
