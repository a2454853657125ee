"""Writes what the fuzzer begins with: `python fuzz/seeds.py FOLDER`. Texts in every language, archives."""

import io
import sys
import tarfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
TEXTS = (
    'def f(x):\n    """Doc."""\n    return x\n\n\nclass A:\n    def g(self):\n        pass\n',
    "// a\nfn f(x: u8) -> u8 {\n    x\n}\n\nimpl A {\n    fn g() {}\n}\n",
    "/* a */\nclass A {\n    int f(int x) {\n        return x;\n    }\n}\n",
    'password = "kX93mmQ011zz"\n',
    "token: ghp_0123456789abcdefghijABCDEFGHIJ012345\nsomeone@company.com\n",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq5cXkZ0Y3v\n-----END RSA PRIVATE KEY-----\n",
    "# SPDX-License-Identifier: MIT OR (Apache-2.0 AND BSD-3-Clause)\n",
)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    sources = [path.read_text() for path in sorted((PROJECT / "services/processor").glob("*.py"))[:12]]
    for number, text in enumerate((*TEXTS, *sources)):
        for language in range(30 if len(text) < 1_000 else 1):
            (folder / f"text-{number}-{language}").write_bytes(bytes([language]) + text.encode()[:4_000])
    for number, data in enumerate((_zip(), _tar(""), _tar("gz"), _tar("bz2"), _tar("xz"))):
        (folder / f"archive-{number}").write_bytes(bytes([number]) + data)


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/b.py", TEXTS[0])
        archive.writestr("../c.py", TEXTS[1])
    return buffer.getvalue()


def _tar(compression: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{compression}") as tar:
        for name, text in (("a/b.py", TEXTS[0]), ("l" * 120, TEXTS[1]), ("../c.py", TEXTS[2])):
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
