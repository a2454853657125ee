"""Whether what stands where a secret could stand is one: pure rules on a name and a value."""

import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from services.processor.stages import secret_patterns

MIN_PASSWORD, MIN_TOKEN = 6, 12  # bytes
MIN_LEFT = 8  # bytes of a token that are not words for one
MIN_MIXED = 8  # bytes of a password of letters, digits and symbols, be it made of words
MAX_VALUE = 4096  # bytes: beyond it, data and not a credential
MIN_ENTROPY = 3.0  # bits a character: detect-secrets' limit for hexadecimal
BEFORE_VERSION = 24  # bytes before four numbers that may say that they are a version
MIN_VARIETY = (
    2.3  # bits a character in the last three quarters of a token; random hexadecimal has 3.3 and more
)
MAX_WORDINESS = 0.62  # share of common bigrams: 0.86 in words, 0.30 in random letters
MAX_WORDINESS_OF_LETTERS = 0.45  # the same for values without digits: they are names of something far oftener
MIN_CHANGES = 0.4  # of the kind of character: 0.25 in camelCase, 0.6 in random letters and digits
_KINDS = bytes(
    1 if chr(byte).islower() else 2 if chr(byte).isupper() else 3 if chr(byte).isdigit() else 4
    for byte in range(128)
) + bytes(128)
PASSWORD_NAMES = (b"pass", b"pwd", b"secret")


def is_secret(name: bytes, value: bytes, *, strict: bool = False) -> bool:
    """Whether a value given to this name, in lower case, is a credential and not a stand-in for one.

    `strict` is for places that may be code, or values of something else than the name before them.
    """
    if (
        len(value) > MAX_VALUE
        or secret_patterns.NOT_THE_SECRET.search(name)
        or secret_patterns.TEMPLATE.search(value)
        or secret_patterns.NOT_A_VALUE.match(value.rstrip(b",;"))
    ):
        return False
    if _is_token(value) and not (strict and _is_of_words(value)):
        return True
    may_be_weak = any(word in name for word in PASSWORD_NAMES)
    return may_be_weak and _is_password(value) and (not strict or _is_mixed(value))


def is_password(value: bytes) -> bool:
    """Whether the password of a URL or a login is one, and no stand-in."""
    return not secret_patterns.TEMPLATE.search(value) and (_is_password(value) or _is_token(value))


def is_token(value: bytes) -> bool:
    """Whether a value that stands by itself is random."""
    return not secret_patterns.TEMPLATE.search(value) and _is_token(value)


def entropy(value: bytes) -> float:
    """Shannon's, in bits a byte."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)


def wordiness(value: bytes) -> float:
    """Share of its bigrams of letters that are common in words; 1 without any."""
    lower = value.lower()
    pairs = [lower[at : at + 2] for at in range(len(lower) - 1) if lower[at : at + 2].isalpha()]
    return sum(pair in secret_patterns.WORD_BIGRAMS for pair in pairs) / len(pairs) if pairs else 1.0


def changes(value: bytes) -> float:
    """Share of its neighbours that differ in being lower case, upper case, digit or symbol."""
    kinds = value.translate(_KINDS)
    return sum(left != right for left, right in pairwise(kinds)) / (len(value) - 1)


def _classes(value: bytes) -> int:
    """How many of lower case, upper case, digits and symbols; what joins words is no symbol."""
    symbols = any(not chr(byte).isalnum() and byte not in b"-_./: " for byte in value)
    return (
        (value != value.upper())
        + (value != value.lower())
        + any(48 <= byte <= 57 for byte in value)
        + symbols
    )


def _is_password(value: bytes) -> bool:
    """Of at least two classes of characters, and more than words that mean a password."""
    if len(value) < MIN_PASSWORD or _classes(value) < 2:
        return False
    if _is_mixed(value):
        return True
    rest = secret_patterns.STAND_INS.sub(b"", value)
    if sum(chr(byte).isalnum() for byte in rest) < 4:
        return False
    if any(48 <= byte <= 57 for byte in value):
        return True
    return _classes(value) >= 3 or wordiness(value) < MAX_WORDINESS


def _is_of_words(value: bytes) -> bool:
    return (
        bool(value.lower().strip(b"0123456789abcdef-"))
        and wordiness(value) > MAX_WORDINESS
        and changes(value) < MIN_CHANGES
    )


def _is_mixed(value: bytes) -> bool:
    """Letters, digits and symbols: a password even if it is made of words."""
    return (
        len(value) >= MIN_MIXED
        and _classes(value) >= 3
        and any(48 <= byte <= 57 for byte in value)
        and any(byte in b"!@#$%^&*+?~" for byte in value)
    )


def _is_token(value: bytes) -> bool:
    """Long, of many different characters, and not made of words."""
    if len(value) < MIN_TOKEN or entropy(value) < MIN_ENTROPY:
        return False
    letters = sum(chr(byte).isalpha() for byte in value)
    digits = sum(48 <= byte <= 57 for byte in value)
    if not letters or len(secret_patterns.STAND_INS.sub(b"", value)) < MIN_LEFT:
        return False
    if digits >= len(value) / 5 or changes(value) > MIN_CHANGES:
        return True
    return wordiness(value) < (MAX_WORDINESS if digits else MAX_WORDINESS_OF_LETTERS)


def is_varied(value: bytes) -> bool:
    """Whether what has the format of a token is more than `xxxx` or `0000` behind a prefix."""
    return entropy(value[len(value) // 4 :]) >= MIN_VARIETY and b"REDACTED" not in value


def kind(name: bytes) -> str:
    """What a value given to this name, in lower case and with what stands before it, is called."""
    for word, whose in secret_patterns.PROVIDERS:
        if word in name:
            return whose
    if b"pass" in name or b"pwd" in name:
        return "password"
    return "token" if b"token" in name else "api_key" if b"key" in name else "secret"


def _is_personal(address: str, before: bytes, *_: bytes) -> bool:
    """Whether an e-mail address can be somebody's."""
    top = address.rpartition(".")[2]
    return (
        top.lower() in secret_patterns.TOP_LEVEL
        and not secret_patterns.NOBODY.search(address)
        and not secret_patterns.BEFORE_A_HOST.search(before)
    )


def _is_public_ipv4(address: str, before: bytes, after: bytes) -> bool:
    """Whether it is a machine's: no private, reserved or documentation address, no mask, no version."""
    octets = address.split(".")
    if any(octet != str(int(octet)) or int(octet) > 255 for octet in octets):
        return False
    if secret_patterns.BEFORE_A_VERSION.search(before[-BEFORE_VERSION:]) or re.fullmatch(rb"\.\d", after):
        return False
    small = sum(int(octet) < 10 for octet in octets[1:])
    if (int(octets[0]) < 10 and small) or (int(octets[0]) < 30 and small > 1) or octets[:2] == ["2", "5"]:
        return False  # 4.2.0.1 and 18.0.3.1 are versions far oftener than addresses; 2.5 is an OID of X.500
    parsed = ipaddress.ip_address(address)
    return parsed.is_global and not parsed.is_multicast and address not in secret_patterns.PUBLIC_RESOLVERS


def _is_public_ipv6(address: str, *_: bytes) -> bool:
    if address.endswith(":"):
        return False  # `in 2008::` of reStructuredText; a network, if anything
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return parsed.is_global and str(parsed) not in secret_patterns.PUBLIC_RESOLVERS


PERSONAL: dict[
    str, Callable[[str, bytes, bytes], bool]
] = {  # of the address, what stands before and after it
    "email": _is_personal,
    "ipv4": _is_public_ipv4,
    "ipv6": _is_public_ipv6,
}
