"""docs/images/*.png: every page in both themes, of the history in tests/metrics_history.

`python -m tests.acceptance.screenshots [http://host:port]`, where `python -m tests.metrics_history` serves;
it is started when no address is given.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image

from services.core.settings import PROJECT
from tests.acceptance.browser import SCHEMES, chromium, history_pages

IMAGES = PROJECT / "docs" / "images"
WIDTH, HEIGHT = 1280, 780  # pixels
ALL_DRAWN = "() => !document.querySelector('figure[data-chart]:not(.drawn)')"
COLOURS = 256
LARGEST = 80_000  # bytes
NAMES = {
    "/": "overview",
    "/ingest": "ingest",
    "/rounds": "rounds",
    "/rounds/demo/4": "round",
    "/rounds/demo-marl/1": "reinforcement",
    "/adapters": "adapters",
    "/adapters/compare": "compare",
    "/alerts": "alerts",
}


def main() -> int:
    if len(sys.argv) > 1:
        return take(sys.argv[1].rstrip("/"))
    with served() as address:
        return take(address)


def take(address: str) -> int:
    """Write them; 1 when one is larger than a page of documentation should load."""
    sizes = {}
    with chromium() as browser:
        for scheme in SCHEMES:
            page = browser.new_page(
                color_scheme=scheme, reduced_motion="reduce", viewport={"width": WIDTH, "height": HEIGHT}
            )
            for path in history_pages():
                if (name := named(path)) is None:
                    continue
                page.goto(address + path, wait_until="load")
                page.wait_for_function(ALL_DRAWN)
                image = IMAGES / f"{name}-{scheme}.png"
                save(page.screenshot(), image)
                sizes[image.name] = image.stat().st_size
    for name, size in sizes.items():
        sys.stdout.write(f"{name}: {size:,} bytes\n")
    return int(any(size > LARGEST for size in sizes.values()))


def save(png: bytes, image: Path) -> None:
    """A palette instead of true colour: a page has few colours, and its picture a third of the bytes."""
    with Image.open(BytesIO(png)) as taken:
        colours = taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    colours.save(image, optimize=True)


def named(path: str) -> str | None:
    """What the picture of this page is called; None: there is none."""
    if path.startswith("/contents/"):
        return "content"
    return NAMES.get(path.partition("?")[0])


@contextmanager
def served() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.metrics_history"]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0].rstrip("/")
    finally:
        process.send_signal(2)  # as Ctrl-C: it ends its database too
        process.wait(30)


if __name__ == "__main__":
    sys.exit(main())
