"""What a server needs beside the services: Compose overlays, healthchecks, scripts."""
