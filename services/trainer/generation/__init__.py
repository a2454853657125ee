"""Writing code with a model: prompts in, completions out, in batches."""
