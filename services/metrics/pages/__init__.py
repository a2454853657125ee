"""The pages for people: one Blueprint, one module a page; whole as served, live where JavaScript runs."""
