"""Experiments: two or more ways of training, compared on problems that none of them has trained on."""
