"""Tasks that programs are learned from: read, split, vetted, stored, and given to rounds."""
