"""Serving: an OpenAI-compatible front that always answers with `adapters/<track>/current`, without a restart.

Behind it is a server that loads LoRA adapters at run time by vLLM's requests: vLLM itself, or
`services.trainer.serving`. Nothing here imports torch.
"""
