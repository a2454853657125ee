"""A server for one machine: the base model with many adapters, by OpenAI's API and vLLM's for adapters.

HTTP, streaming and chat templates are those of `transformers serve`; which adapter answers is decided here.
"""
