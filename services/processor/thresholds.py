"""Every threshold of the filters, its source beside it.

StarCoder2: arXiv 2402.19173 §2. OpenCoder: opc_data_filtering. refact: its file filter.
"""

# Reading
MAX_FILE_BYTES = 1_000_000  # the seed's cap
MAX_DEPTH = 64  # directories; the deepest of the Linux tree is 11
MAX_PATH_BYTES = 1_500  # a PostgreSQL index entry holds 2,704
GIT_BINARY_PREFIX = 8_000  # bytes; git calls a file binary when NUL is among them (xdiff-interface.c)
MAX_CONTROL_SHARE = 0.01  # of bytes that no text editor writes; ours

# Length
MIN_CHARACTERS = 50  # the seed's shortest sample
MAX_LINES = 100_000  # StarCoder2, OpenCoder
MAX_DATA_LINES = 512  # StarCoder2, for JSON and YAML
MEAN_LINE = 100  # characters; StarCoder2, OpenCoder
MAX_LINE = 1_000  # characters; StarCoder2, OpenCoder
MAX_LINE_OF_MARKUP = 100_000  # characters; StarCoder2, for the languages it exempts

# Characters
MIN_ALPHABETIC = 0.25  # of all characters; StarCoder2
MAX_DIGITS = 0.30  # of all characters; refact
MIN_BLANKS = 0.04  # of all characters; ours: minified code has 1–3 %, code 15–35 %
MINIFIED_FROM = 1_000  # characters; shorter files say too little

# Encoded data: base64, hexadecimal pairs, \u escapes
MAX_ENCODED_RUN = 1_024  # characters of one match; StarCoder2
MAX_ENCODED_SHARE = 0.50  # of the file; StarCoder2
MIN_BASE64_RUN = 64  # characters; StarCoder2

# Generated code
GENERATED_WITHIN = 5  # first lines; StarCoder2

# HTML
MIN_VISIBLE_CHARACTERS = 100  # StarCoder2
MIN_VISIBLE_SHARE = 0.20  # StarCoder2

# Python
MAX_PARSED_BYTES = 200_000  # larger files are not parsed: it would take over a second
