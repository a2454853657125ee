"""`ratchet doctor`: what would keep Ratchet from working here, before anything starts, each with its cure.

A check is a function of the environment that yields findings and changes nothing: a module a theme, listed in
`command`.
"""
