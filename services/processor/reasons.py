"""Why a file was refused: stable codes, stored in the database and looked up by people."""

from enum import StrEnum


class Reason(StrEnum):
    # Refused by what it is, without being opened
    SYMLINK = "symlink"  # a symbolic link, to a file or a directory: never followed
    SPECIAL_FILE = "special_file"  # FIFO, socket or device: never opened
    VENDORED = "vendored"  # a directory of other people's or installed code; one row stands for all below it
    IGNORED = "ignored"  # the source's own .gitignore or .ratchetignore names it
    TOO_DEEP = "too_deep"  # a directory nested deeper than any repository nests
    PATH_TOO_LONG = "path_too_long"  # the path does not fit an index entry
    BINARY_TYPE = "binary_type"  # a name that only binary files have: .png, .so, .zip

    # Refused because it could not be read
    UNREADABLE = "unreadable"  # no permission, or the disk said no; tried again at every scan
    VANISHED = "vanished"  # gone between being listed and being read
    TOO_LARGE = "too_large"  # more bytes than any file worth training on

    # Refused as text
    EMPTY = "empty"  # no characters but white space
    BINARY = "binary"  # NUL among the first bytes, or many control characters
    NUL_BYTE = "nul_byte"  # NUL further on: PostgreSQL stores none
    NOT_UTF8 = "not_utf8"  # not strict UTF-8; other encodings are not guessed
    TOO_SHORT = "too_short"  # too few characters to complete
    TOO_MANY_LINES = "too_many_lines"  # more lines than code has; fewer are allowed for data formats
    UNKNOWN_LANGUAGE = "unknown_language"  # neither name, shebang nor content says one we train on

    # Refused as code
    LONG_LINE = "long_line"  # one line beyond what people write
    LONG_LINES_ON_AVERAGE = "long_lines_on_average"  # the mean is beyond what people write
    LOW_ALPHABETIC = "low_alphabetic"  # few letters: tables, drawings, dumps
    MANY_DIGITS = "many_digits"  # a table of numbers
    MOSTLY_BLANK = "mostly_blank"  # more white space than all else
    SHORT_LINES_ON_AVERAGE = "short_lines_on_average"  # a column of numbers or brackets
    TOO_FEW_WORDS = "too_few_words"  # hardly anything but comments and punctuation
    MOSTLY_COMMENTS = "mostly_comments"  # nothing to learn but prose
    MOSTLY_IMPORTS = "mostly_imports"  # a list of what lies elsewhere
    MOSTLY_DIRECTIVES = "mostly_directives"  # C that only includes and defines
    MOSTLY_STRINGS = "mostly_strings"  # messages or tables of words, not code
    MOSTLY_ASSERTS = "mostly_asserts"  # one assertion after the other
    EMPTY_BODIES = "empty_bodies"  # classes and functions of `pass`
    MOSTLY_PRINTS = "mostly_prints"  # output and nothing else
    HEXADECIMAL = "hexadecimal"  # hexadecimal numbers make up too much of it
    DATA_TABLE = "data_table"  # literals written out as code
    REPEATED_LINES = "repeated_lines"  # most lines occur more than once
    REPEATED_WORDS = "repeated_words"  # the same few words over and over
    GENERATED = "generated"  # its name or its first lines say that a program wrote it
    MINIFIED = "minified"  # written for machines: no line breaks or no blanks to speak of
    ENCODED_DATA = "encoded_data"  # base64, hexadecimal or \u escapes make up too much of it
    HIDDEN_MARKUP = "hidden_markup"  # HTML with hardly any visible text
    SYNTAX_ERROR = "syntax_error"  # its language's parser does not accept it

    # Refused for what it is a copy of, or whose it is
    NEAR_DUPLICATE = "near_duplicate"  # another file that is nearly the same has a better score
    CONTAMINATED = "contaminated"  # holds a problem or solution of a benchmark the model is measured by
    LICENCE_DENIED = "licence_denied"  # its licence, or that of its source, is not among those allowed
    FORGOTTEN = "forgotten"  # taken back by `ratchet forget`: its path, or its text wherever it turns up

    # Refused by the archive it lies in
    ARCHIVE_BROKEN = "archive_broken"  # the archive cannot be read from here on
    ARCHIVE_TOO_LARGE = "archive_too_large"  # more members, bytes or expansion than an archive may have
    ARCHIVE_ENCRYPTED = "archive_encrypted"  # a member that needs a password
    ARCHIVE_PATH = "archive_path"  # a member whose name leads out of the archive

    # Refused because judging it had to be broken off
    JUDGE_TIMEOUT = "judge_timeout"  # took longer than any file may
    JUDGE_CRASHED = "judge_crashed"  # ended the process that judged it, or needed too much memory


# The walk gives these without opening the file: when one no longer applies, the file must be read.
BY_THE_WALK = frozenset(
    {
        Reason.SYMLINK,
        Reason.SPECIAL_FILE,
        Reason.VENDORED,
        Reason.IGNORED,
        Reason.TOO_DEEP,
        Reason.PATH_TOO_LONG,
    }
)
# These say nothing of the bytes: the file is tried again even when size and mtime stayed.
TRIED_AGAIN = frozenset({Reason.UNREADABLE, Reason.VANISHED})
