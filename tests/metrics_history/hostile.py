"""Files nobody should trust: markup, marks that turn the writing round and controls in names and code."""

BIDI_NAME = "src/invoice_\u202eyp.tset\u202c.py"
NEWLINE_NAME = "src/first\nline: <b>second</b>.py"
MARKUP_NAME = "src/<script>document.title='owned'</script>.py"
QUOTED_NAME = "src/\"><img src=x onerror=alert(1)>'.py"
CONTROL_NAME = "src/\x1b[31mred\x07.py"
TEMPLATE_NAME = "src/{{ 7 * 7 }}{% raw %}.py"

CODE = '''"""</code></pre><script>document.title = "owned"</script>"""


def is_admin(user, level="user\u202e \u2066# check if admin\u2069 \u2066"):
    """<img src=x onerror="document.title = 'owned'"> &lt;already&gt; escaped &amp; not."""
    if level != "user\u202e":
        return True
    red = "\u200b\x1b[31mred\x1b[0m"
    return user in {"root", red}


class Account:
    """{{ config }} {% include "page.html" %}"""

    def __init__(self, name: str) -> None:
        self.name = name

    def greeting(self, times: int = 1) -> str:
        """What the page says to an account."""
        return f"<b>{self.name}</b>"
'''

HOSTILE: list[tuple[str, bytes]] = [
    (name, CODE.replace("Account", f"Account{number}").encode())
    for number, name in enumerate(
        (BIDI_NAME, NEWLINE_NAME, MARKUP_NAME, QUOTED_NAME, CONTROL_NAME, TEMPLATE_NAME)
    )
]

PEOPLE: list[tuple[str, bytes]] = [
    (
        "src/mail/settings.py",
        b'''# SPDX-License-Identifier: BSD-3-Clause
"""Where the mails of the billing service go."""

import os

SENDER = "greta.halvorsen@nordwind-fracht.de"
AWS_ACCESS_KEY_ID = "AKIAZ7QX3MJD5KWT2VNR"
HOST = os.environ.get("MAIL_HOST", "mail.internal")


def recipients(customer, copies=()):
    """The addresses that a bill goes to; raises LookupError when the customer has none."""
    if not customer.addresses:
        raise LookupError(f"customer {customer.number} has no address")
    return [*customer.addresses, *copies, SENDER]


def subject(customer, month):
    """One line for the bill of a month."""
    return f"Your bill for {month:%B %Y}, customer {customer.number}"
''',
    ),
    (
        "src/mail/customers.py",
        b'''"""Who gets a bill by letter."""


def by_letter(customers, month):
    """The customers without a mail address who owe something for a month."""
    if month is None:
        raise ValueError("a month is expected")
    return [customer for customer in customers if not customer.mail and customer.owes(month)]


NAMES = ["Greta Halvorsen", "Ole Brandvik", "Wenche Aune"]
''',
    ),
]
