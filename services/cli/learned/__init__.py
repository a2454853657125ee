"""Ask what an adapter has learned and who has learned a file; take code back."""
