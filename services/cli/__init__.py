"""The `ratchet` command: `commands` has what can be typed, the folders of the same names do it.

From above to below: `commands`; `corpus`, `training`, `tasks`, `judging`, `champions`, `using`, `learned` and
`operating`, a section of `ratchet --help` each; `doctor`; `asking`; `stack`, what `ratchet up` runs;
`printing` and `environment`.
"""
