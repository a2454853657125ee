"""How alike two texts are: by lines without what trails them, and by Levenshtein's distance."""


def normalised(text: str) -> str:
    """Without blanks at the ends of lines and blank lines at both ends."""
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def edit_similarity(one: str, other: str) -> float:
    """1 - distance / length of the longer; 1 for two empty texts."""
    longer = max(len(one), len(other))
    return 1.0 - distance(one, other) / longer if longer else 1.0


def distance(one: str, other: str) -> int:
    """Levenshtein's, in characters: a column of the table is two integers of as many bits as `one` is long.

    Bit-parallel, after Myers 1999 (Journal of the ACM 46) as told by Hyyrö 2003, figure 6.
    """
    if not one:
        return len(other)
    at: dict[str, int] = {}  # character → its places in `one`
    for place, character in enumerate(one):
        at[character] = at.get(character, 0) | 1 << place
    full, last = (1 << len(one)) - 1, 1 << len(one) - 1
    rises, falls, found = full, 0, len(one)  # from row to row of the column before; its last value
    for character in other:
        equal = at.get(character, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls
        right_rises = falls | (full & ~(diagonal | rises))
        right_falls = rises & diagonal
        found += bool(right_rises & last) - bool(right_falls & last)
        right_rises = right_rises << 1 | 1
        rises = full & (right_falls << 1 | ~(diagonal | right_rises))
        falls = full & diagonal & right_rises
    return found
