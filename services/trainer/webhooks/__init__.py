"""Webhooks: events on their way to the addresses in WEBHOOK_URLS.

`message` makes what is sent, `transport` sends it, `outbox` knows what is still to be sent, `sender` does it
in threads beside the trainer daemon. Why so: docs/decisions/0026-events-and-webhooks.md.
"""
