"""Runs programs that nobody has read, each in a cage of its own, and says whether they pass their tests.

`server` takes programs on a Unix socket and hands them to slots; a `slot` runs one at a time, in a `cage`
(bubblewrap, `seccomp`); `inside` is what runs in cages: the program's end and the checker's. Standard
library alone.
"""
