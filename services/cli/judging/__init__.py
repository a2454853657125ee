"""Judge what came of it: verdicts, comparisons, experiments, the gate's errors."""
