"""What came in."""

from services.core.models import Json, Service
from services.metrics.families.family import Buckets, Family, Samples, Section, View, heard, of


def _ingest(view: View) -> Json:
    found: Json = (view.snapshot or {})["ingest"]
    return found


def _scores(view: View) -> Samples:
    below, buckets = 0, []
    ingest = _ingest(view)
    for decade in ingest["scores"][:-1]:
        below += decade["contents"]
        buckets.append((f"{decade['to']}.0", float(below)))
    buckets.append(("+Inf", float(below + ingest["scores"][-1]["contents"])))
    yield (), Buckets(buckets, ingest["score_sum"])


def _last_scan(view: View) -> Samples:
    if time := _ingest(view)["last_scanned_at"]:
        yield (), time.timestamp()


def _last_content(view: View) -> Samples:
    if time := (view.snapshot or {})["operations"]["newest_content_at"]:
        yield (), time.timestamp()


def _speed(view: View) -> Samples:
    details = [detail for _, detail in heard(view.snapshot or {}, Service.PROCESSOR)]
    if details:
        yield (), details[0].get("files_per_s")


SECTION = Section(
    "Ingest",
    (
        Family("sources", "gauge", "Sources seen in the ingest volume", of("ingest", "sources")),
        Family("files", "gauge", "Files now in the ingest volume", of("ingest", "files")),
        Family(
            "files_rejected",
            "gauge",
            "Files now in the ingest volume that were refused, by reason",
            lambda view: (((reason,), number) for reason, number in _ingest(view)["rejected"].items()),
            ("reason",),
        ),
        Family(
            "files_waiting",
            "gauge",
            "Files that were found and are to be read",
            of("operations", "files_waiting"),
        ),
        Family(
            "ingest_files_per_second",
            "gauge",
            "Files judged a second in the scan now running, or the last one, by the processor heard last",
            _speed,
        ),
        Family(
            "last_scan_timestamp_seconds", "gauge", "When a source was last walked to its end", _last_scan
        ),
        Family("contents_stored", "counter", "Distinct contents stored", of("ingest", "contents")),
        Family("contents_stored_bytes", "counter", "Size of the distinct contents", of("ingest", "bytes")),
        Family(
            "last_content_timestamp_seconds", "gauge", "When the newest content was stored", _last_content
        ),
        Family(
            "contents",
            "gauge",
            "Distinct contents by language",
            lambda view: (((language,), number) for language, number in _ingest(view)["languages"].items()),
            ("language",),
        ),
        Family(
            "contents_above_threshold",
            "gauge",
            "Contents with a score at or above QUALITY_THRESHOLD",
            of("ingest", "contents_above_threshold"),
        ),
        Family("content_score", "histogram", "Scores of the contents, 0 to 100", _scores),
    ),
)
