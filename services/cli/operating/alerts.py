"""`ratchet alerts`: what a person should look at, the worst first, each with what to do."""

import sys
from collections.abc import Sequence

from rich.text import Text

from services.cli.environment import Environment
from services.cli.operating import status
from services.cli.printing.figures import moment
from services.cli.printing.inert import inert
from services.cli.printing.screen import Terminal
from services.metrics.alerting import Alert, Severity, alerts
from services.metrics.document import strict_json

STYLES = {Severity.BAD: "bold red", Severity.WAIT: "yellow"}
WORDS = {Severity.BAD: "act now", Severity.WAIT: "look"}


def run(environment: Environment, *, as_json: bool) -> bool:
    """Print them; whether none of them is bad. A database that is away is one of them, no error."""
    reading, health = status.look(environment)
    found = alerts(reading.value, health)
    if as_json:
        print(strict_json({"alerts": [alert.as_json() for alert in found]}))
    else:
        console = Terminal(sys.stdout)
        for line in lines(found):
            console.print(line)
    return not any(alert.severity is Severity.BAD for alert in found)


def lines(found: Sequence[Alert]) -> list[Text]:
    """Three lines an alert: what, why, what to do."""
    if not found:
        return [Text("nothing needs you")]
    told = []
    for alert in found:
        since = "" if alert.since is None else f" (since {moment(alert.since)} UTC)"
        mark = (f"{WORDS[alert.severity]:<9}", STYLES[alert.severity])
        told.append(Text.assemble(mark, f"{inert(alert.title)}{since}"))
        told.append(Text(f"{'':<9}{inert(alert.text)}"))
        told.append(Text(f"{'':<9}→ {inert(alert.cure)}"))
    return told
