"""Use an adapter: write with it, serve it, merge it, and measure that it answers alike everywhere."""
