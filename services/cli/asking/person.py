"""Who asks, for the record of what is asked."""

import getpass
import os


def user() -> str:
    """Who runs this command, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        return f"uid {os.getuid()}"
