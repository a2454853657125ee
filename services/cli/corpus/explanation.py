"""What `ratchet explain` found out, in lines for a person."""

from collections import Counter
from collections.abc import Iterable, Iterator

from services.cli.printing.figures import moment
from services.cli.printing.inert import inert
from services.core.models import Json

LABEL = 12  # characters


def lines(told: Json) -> Iterator[str]:
    """The same for a person, nothing in it that a terminal would obey."""
    yield inert(f"{told['source']}/{told['path']}" if told["source"] not in (None, ".") else told["path"])
    labelled = _labelled(told)
    yield from (f"  {label:{LABEL}}{inert(line)}".rstrip() for label, line in labelled)


def _labelled(told: Json) -> Iterator[tuple[str, str]]:
    judged, held = told["now"], told["database"]
    if judged is None:
        yield "now", "not there, or passed over by the processor"
    else:
        yield "now", _sum_up(judged, "kept" if judged["kept"] else "refused")
        yield from _details(judged)
    if held is None:
        yield "database", told["database_problem"] or "knows nothing of it: not scanned yet, or passed over"
        return
    since = moment(held["seen_at"])
    yield "database", _sum_up(held, f"{held['state']} ({since})")
    if held["percentile"] is not None:
        yield "percentile", f"scores higher than {held['percentile']:g} % of the {held['language']} contents"
    if judged is None or not judged["kept"]:
        yield from _details(held)
    yield from _provenance(held)
    yield from _apart("differs", told["differences"] or ["in nothing"])


def _sum_up(part: Json, outcome: str) -> str:
    if part["reason"]:
        detail = f" ({part['detail']})" if part["detail"] else ""
        whole = f"; of all below {part['covered_by']}" if part["covered_by"].endswith("/") else ""
        return f"{outcome}: {part['reason']}{detail}: {part['why'] or 'of another version'}{whole}"
    if part["score"] is None:
        return outcome
    return (
        f"{outcome}: {part['score']} of 100, {part['language']}, {part['lines']:,} lines,"
        f" {part['bytes']:,} bytes"
    )


def _details(part: Json) -> Iterator[tuple[str, str]]:
    yield from _apart(
        "points",
        (f"{each['reason']:<14}{each['points']:>3} of {each['most'] or '?'}" for each in part["points"]),
    )
    if part["units"]:
        kinds = Counter(each["kind"] for each in part["units"])
        yield "units", ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    yield from _apart("redacted", (f"line {each['line']}: {each['kind']}" for each in part["redactions"]))
    licence = part["licence"] or part["source_licence"]
    yield "licence", f"{licence}{'' if part['licence'] else ' (of its source)'}" if licence else "none found"
    if part["duplicate_of"]:
        better = part["duplicate_of"]
        where = ", ".join(better["at"]) or "no file any more"
        yield "kept instead", f"{where} (score {better['score']}, {better['sha256'][:12]})"


def _provenance(held: Json) -> Iterator[tuple[str, str]]:
    if held["cluster"] is not None:
        yield "cluster", f"{held['cluster']}, {held['contents_in_cluster']} contents"
    if held["near_duplicates"]:
        yield "duplicates", f"{held['near_duplicates']} files were refused as nearly the same"
    if held["also_at"]:
        yield "also at", ", ".join(held["also_at"])
    if held["commit"]:
        yield "commit", f"{held['commit'][:12]}, {moment(held['changed_at'])}"
    if held["renamed_from"]:
        yield "was", held["renamed_from"]
    if held["rounds"] is None:
        yield "rounds", "not for this role to know"
    else:
        used = (
            f"{each['track']} {each['number']} ({each['state']}): {each['role']}" for each in held["rounds"]
        )
        yield from _apart("rounds", used)


def _apart(label: str, items: Iterable[str]) -> Iterator[tuple[str, str]]:
    """One item a line, the label before the first."""
    for number, item in enumerate(items):
        yield "" if number else label, item
