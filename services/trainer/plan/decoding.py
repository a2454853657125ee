"""Whether a base in NF4 is decoded once for a round. Pure, without torch."""

SHARE = 1 / 8  # of a device's free memory, at most


def is_decoded(decoded_bytes: int, free_bytes: int) -> bool:
    """Whether decoded layers are so little of what is free that nothing else has to be smaller for them."""
    return decoded_bytes <= SHARE * free_bytes
