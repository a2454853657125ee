"""docs/reference/api.md from the OpenAPI document: `python -m services.metrics.api.reference` writes it."""

from collections.abc import Iterator

from services.core.models import Json
from services.core.settings import PROJECT, Settings
from services.metrics.api.description import operations, schemas

PAGE = PROJECT / "docs" / "reference" / "api.md"
OPENING = """\
<!-- Written by `python -m services.metrics.api.reference`: edit services/metrics/api there instead. -->

# The API

What a Ratchet has read, trained, judged and published, as JSON below `http://localhost:8090/api/v1`.
`/api/v1/openapi.json` describes it for programs, `/api` for people. Reading takes no token. Whatever changes
something is asked of a track's trainer by a POST to `/api/v1/requests`: [how](../how-to/steer.md).

Lists come in pages: `limit` rows, and in `next` what to give as `after` for the following page; null says
that there is none. No page costs more than its rows, however many there are. A parameter that is unknown or
beyond its limits is a 422 that names it, what is not there a 404, a database that does not answer within a
second a 503; each is `{"error": …, "message": …}`. The code itself is in no answer.

```sh
curl -s 'http://localhost:8090/api/v1/rejections?reason=generated&limit=3'
```
"""


def page(document: Json) -> str:
    """docs/reference/api.md."""
    return "".join([OPENING, *_paths(document), "\n## What is answered and sent\n", *_answers(document)])


def _paths(document: Json) -> Iterator[str]:
    for operation in operations(document):
        takes = f" Takes `{operation.body}`." if operation.body else ""
        token = " Needs the token." if operation.needs_token else ""
        heading = f"\n## {operation.method} {operation.path}\n\n{operation.summary}"
        yield f"{heading}{takes} Answers `{operation.answer}`.{token}\n"
        if operation.parameters:
            yield "\n| parameter | in | type | limits | |\n|---|---|---|---|---|\n"
        for each in operation.parameters:
            yield f"| `{each.name}` | {each.place} | {each.type} | {each.limits} | {each.text} |\n"


def _answers(document: Json) -> Iterator[str]:
    for schema in schemas(document):
        yield f"\n### {schema.name}\n\n| field | type | |\n|---|---|---|\n"
        for member in schema.members:
            yield f"| `{member.name}` | {member.type} | {member.text} |\n"


def main() -> None:
    PAGE.write_text(page(document()), encoding="utf-8")


def document() -> Json:
    """The document, made without any database."""
    from services.metrics.app import create_app

    app = create_app(Settings.model_validate({"database_url": "postgresql://nobody:nothing@localhost/none"}))
    return dict(app.extensions["openapi"])


if __name__ == "__main__":
    main()
