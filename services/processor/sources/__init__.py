"""What lies in the ingest folder, and how it is read without trusting it. The door is `source`."""
