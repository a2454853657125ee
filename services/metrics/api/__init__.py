"""The read API below /api/v1: lists by pages, described by an OpenAPI document made from this code."""

from services.metrics.api.routes import add_api

__all__ = ["add_api"]
