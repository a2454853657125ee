"""Watch and set up: states, logs, events, alerts, webhooks, settings."""
