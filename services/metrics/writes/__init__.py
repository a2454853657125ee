"""The one way in which this service changes anything: it asks the trainer, for who knows the token."""
