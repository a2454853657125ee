"""Models asked the same: what each answers, how good that is, and who wins how often."""
