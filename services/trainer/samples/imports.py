"""What a file imports of its own repository, by its text and the others' paths; and an order from that.

A light resolver: it matches names with paths and reads no build files. What it does not find is as if it
were of elsewhere.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from services.trainer.samples.source import SampleSource

SCRIPTS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".vue")
PYTHON = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)|import[ \t]+([^\n#]+))",
    re.MULTILINE,
)
PYTHON_NAME = re.compile(r"([\w.]+)(?:\s+as\s+\w+)?")
RUST = re.compile(
    r"^[ \t]*(?:pub(?:\([^)]*\))?[ \t]+)?(?:mod[ \t]+(\w+)[ \t]*;|use[ \t]+((?:crate|super|self)(?:::\w+)+))",
    re.MULTILINE,
)
GO = re.compile(r'^[ \t]*(?:import[ \t]+)?(?:[\w.]+[ \t]+)?"([\w./~-]+)"[ \t]*$', re.MULTILINE)
JVM_FILES = (".java", ".kt", ".scala")
JVM = re.compile(r"^[ \t]*import[ \t]+(?:static[ \t]+)?([\w.]+)", re.MULTILINE)
SCRIPT = re.compile(
    r"""(?:\bfrom[ \t]*|\bimport[ \t]*\(?[ \t]*|\brequire[ \t]*\([ \t]*)["'](\.[^"'\n]*)["']"""
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def in_import_order(files: Sequence[SampleSource]) -> list[SampleSource]:
    """The files of one repository, each behind those it imports.

    Depth first from the first path in order; an import that would close a circle is passed over, so the
    order depends on nothing but paths and texts.
    """
    by_path = {file.path: file for file in sorted(files, key=lambda file: (file.path, file.content_id))}
    index = _Index(by_path)
    needs = {path: sorted(index.imported(file) - {path}) for path, file in by_path.items()}
    placed: dict[str, None] = {}
    begun: set[str] = set()
    for root in by_path:
        waiting: list[tuple[str, Iterator[str]]] = [(root, iter(needs[root]))] if root not in begun else []
        begun.add(root)
        while waiting:
            path, rest = waiting[-1]
            following = next((need for need in rest if need not in begun), None)
            if following is None:
                placed[path] = None
                waiting.pop()
            else:
                begun.add(following)
                waiting.append((following, iter(needs[following])))
    ordered = [by_path[path] for path in placed]
    alike = [file for file in files if by_path[file.path] is not file]  # of two with one path the second
    return ordered + sorted(alike, key=lambda file: (file.path, file.content_id))


class _Index:
    """The paths of a repository, found by how imports name them."""

    def __init__(self, by_path: Mapping[str, SampleSource]) -> None:
        self._paths = set(by_path)
        self._by_stem: dict[str, list[str]] = {}
        self._by_folder: dict[str, list[str]] = {}
        for path in by_path:
            folder, name = posixpath.split(path)
            stem = name.partition(".")[0]
            if stem in ("__init__", "mod"):
                stem = posixpath.basename(folder)
            self._by_stem.setdefault(stem, []).append(path)
            self._by_folder.setdefault(posixpath.basename(folder), []).append(path)

    def imported(self, file: SampleSource) -> set[str]:
        find = {
            "python": self._python, "rust": self._rust, "go": self._go, "java": self._jvm,
            "kotlin": self._jvm, "scala": self._jvm, "javascript": self._script, "typescript": self._script,
            "c": self._include, "c++": self._include,
        }.get(file.language)  # fmt: skip
        return set() if find is None else set(find(file.path, file.text))

    def _python(self, path: str, text: str) -> Iterator[str]:
        for module, names, plain in PYTHON.findall(text):
            for name in PYTHON_NAME.findall(plain):
                yield from self._module(path, name)
            if module:
                yield from self._module(path, module)
                for name in PYTHON_NAME.findall(names):
                    yield from self._module(path, f"{module}.{name}" if module.strip(".") else module + name)

    def _module(self, path: str, name: str) -> Iterator[str]:
        level = len(name) - len(name.lstrip("."))
        parts = [part for part in name.split(".") if part]
        if not parts:
            return
        if level:
            folder = posixpath.dirname(path)
            for _ in range(level - 1):
                folder = posixpath.dirname(folder)
            here = posixpath.join(folder, *parts)
            yield from self._existing([f"{here}.py", f"{here}/__init__.py"])
        else:
            where = "/".join(parts)
            yield from self._ending(parts[-1], [f"{where}.py", f"{where}/__init__.py"])

    def _rust(self, path: str, text: str) -> Iterator[str]:
        folder, name = posixpath.split(path)
        own = folder if name in ("mod.rs", "lib.rs", "main.rs") else posixpath.join(folder, name[:-3])
        for module, used in RUST.findall(text):
            if module:
                yield from self._existing([f"{own}/{module}.rs", f"{own}/{module}/mod.rs"])
                continue
            root, *parts = used.split("::")
            for size in range(len(parts), 0, -1):  # the last parts may be items of a module
                where = "/".join(parts[:size])
                names = [f"{where}.rs", f"{where}/mod.rs"]
                if root == "crate":
                    found = list(self._ending(parts[size - 1], [f"src/{each}" for each in names]))
                else:
                    base = own if root == "self" else posixpath.dirname(own)
                    found = list(self._existing([posixpath.join(base, each) for each in names]))
                if found:
                    yield from found
                    break

    def _go(self, _: str, text: str) -> Iterator[str]:
        for package in GO.findall(text):
            for path in self._by_folder.get(posixpath.basename(package), ()):
                folder = posixpath.dirname(path)
                if path.endswith(".go") and (package == folder or package.endswith(f"/{folder}")):
                    yield path

    def _jvm(self, _: str, text: str) -> Iterator[str]:
        for name in JVM.findall(text):
            parts = name.split(".")
            for size in (len(parts), len(parts) - 1):  # the last part may be a member
                where = "/".join(parts[:size])
                if size:
                    yield from self._ending(parts[size - 1], [f"{where}{end}" for end in JVM_FILES])

    def _script(self, path: str, text: str) -> Iterator[str]:
        for name in SCRIPT.findall(text):
            here = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            bare = re.sub(r"\.[mc]?js$", "", here)  # TypeScript names the file that it becomes
            ends = [*SCRIPTS, *(f"/index{end}" for end in SCRIPTS)]
            yield from self._existing([here, *(f"{bare}{end}" for end in ends)])

    def _include(self, path: str, text: str) -> Iterator[str]:
        for name in INCLUDE.findall(text):
            here = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            if here in self._paths:
                yield here
            else:
                yield from self._ending(
                    posixpath.basename(name).partition(".")[0], [posixpath.normpath(name)]
                )

    def _existing(self, paths: Iterable[str]) -> Iterator[str]:
        """The first of these that there is."""
        found = next((path for path in paths if path in self._paths), None)
        return iter(()) if found is None else iter((found,))

    def _ending(self, stem: str, ends: Sequence[str]) -> Iterator[str]:
        """The shortest path that ends so."""
        found = [
            path
            for path in self._by_stem.get(stem, ())
            if any(f"/{path}".endswith(f"/{end}") for end in ends)
        ]
        return iter(sorted(found, key=lambda path: (len(path), path))[:1])
