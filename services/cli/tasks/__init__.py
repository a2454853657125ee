"""Tasks for reinforcement: sets of them, and benchmarks made into sets."""
