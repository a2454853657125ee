"""What was judged becomes rows: a chunk of files, one transaction, safe to repeat.

What is kept of near duplicates is decided under one lock for all processors, so that the outcome does
not depend on how many there are. The lock is held while rows are written, not while files are judged.

`stored` has what is there already and decides what is kept; `storing` writes a chunk, `uniting` its clusters;
`leaving` is what becomes of files that are gone, `known` what is told of all that is there.
"""
