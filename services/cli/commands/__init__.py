"""What can be typed after `ratchet`: names, options and help, a module a section of `ratchet --help`.

A command imports what it needs when it runs, and hands over at once: `--help` stays instant.
"""
