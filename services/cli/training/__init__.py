"""Ask for rounds and look at them; recipes, what they need and what the model sees."""
