"""A model that answers: base, adapter or whole model, loaded afresh, and what it writes after prompts.

`loading` has the model and its tokenizer, `writing` what it writes, `question` one question with its answers;
`python -m services.trainer.answering` is the process that is asked.
"""
