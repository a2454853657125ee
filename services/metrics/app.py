"""The routes: /health, /metrics, /api/v1 and the page. Only GET and HEAD, only JSON, text and HTML."""

from functools import cache
from typing import TYPE_CHECKING, Any

from flask import Flask, Response, abort, current_app, render_template, request
from werkzeug.exceptions import HTTPException, InternalServerError

from services.core.settings import Settings, from_environment
from services.metrics.api import add_api
from services.metrics.api.reader import Reader
from services.metrics.document import as_text, strict_json
from services.metrics.front import Front, same_for_all
from services.metrics.health import Status
from services.metrics.hosts import check_hosts
from services.metrics.negotiation import Format, choose
from services.metrics.observer import Observer
from services.metrics.pages.blueprint import add_pages
from services.metrics.requests_served import RequestsServed, watch
from services.metrics.shared import SharedPages
from services.metrics.stream.hub import Hub
from services.metrics.stream.routes import add_stream, make_hub
from services.metrics.writes.access import COOKIE, Access, Session
from services.metrics.writes.pages import OUTCOME, add_writes

if TYPE_CHECKING:
    from services.metrics.exposition import Exposition

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def create_app(settings: Settings | None = None) -> Flask:
    """The application; reads no row before the first request that needs one.

    Raises ConfigurationError when the settings name no way to log in to the database.
    """
    settings = settings or from_environment()
    observer = Observer(settings)
    app = Flask(__name__)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    check_hosts(app, settings.metrics_trusted_hosts, settings.metrics_host)
    reader = Reader(settings.database())
    app.extensions.update(observer=observer, reader=reader)
    _add_health(app, observer)
    served = watch(app)
    _add_metrics(app, observer, served)
    access = Access(settings.dashboard_token)
    add_api(app, observer, reader, access)
    hub = make_hub(settings.database(), observer, reader)
    add_stream(app, hub, observer, "/api/v1/stream")
    add_pages(app, observer, reader)
    add_writes(app, reader, access)
    _share(app, observer, hub, access)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unforeseen)
    app.after_request(_harden)
    app.wsgi_app = Front(app.wsgi_app, served)  # type: ignore[method-assign]
    return app


def _share(app: Flask, observer: Observer, hub: Hub, access: Access) -> None:
    """Render each page once for all who look at the same moment."""

    def signed_in() -> Session | None:
        return access.session(request.cookies.get(COOKIE))

    shared = SharedPages(app, lambda: hub.last_id, signed_in, OUTCOME)
    shared.wrap("pages")
    observer.followed = shared.render_again


def _add_health(app: Flask, observer: Observer) -> None:
    @app.get("/health")
    def health() -> Response:
        found = observer.health()
        return _json(found.as_json(), 503 if found.status is Status.ILL else 200)

    @app.get("/health/live")
    def live() -> Response:
        return _json({"status": "ok"})

    @app.get("/health/ready")
    def ready() -> Response:
        why = observer.not_ready()
        return _json({"status": "ok"}) if why is None else _json({"status": "ill", "reason": why}, 503)


def _add_metrics(app: Flask, observer: Observer, served: RequestsServed) -> None:
    @cache
    def exposition() -> "Exposition":
        from services.metrics.exposition import Exposition  # 60 ms that a start need not wait for

        return Exposition(served)

    @app.get("/metrics")
    def metrics() -> Response:
        wanted = request.args.get("format")
        if wanted is not None and wanted not in list(Format):
            abort(400, f"format={wanted!r} is unknown: it may be json or prometheus")
        accept = request.headers.get("Accept")
        reading, health = observer.snapshot(), observer.health()
        if (wanted or choose(accept)) == Format.PROMETHEUS:
            body, content_type = exposition()(reading, health, accept)
            observer.preparations[content_type] = lambda new: exposition().anew(
                new, observer.health(), accept
            )
            same_for_all(lambda: exposition().known(observer.snapshot(), content_type))
            response = Response(body, content_type=content_type)
        else:
            observer.preparations["json"] = lambda new: as_text(new, health)
            response = Response(as_text(reading, health), content_type="application/json")
        response.vary.add("Accept")
        return response


def _json(value: Any, status: int = 200) -> Response:
    return Response(strict_json(value) + "\n", status, content_type="application/json")


def _http_error(error: HTTPException) -> Response:
    """The error as HTML for a browser, as JSON for everyone else; headers such as Allow stay."""
    response = Response(status=error.code or 500)
    for name, value in error.get_headers():
        response.headers[name] = value
    for_people = not request.path.startswith(("/metrics", "/health", "/api/"))
    if for_people and "text/html" in request.headers.get("Accept", ""):
        response.data = render_template("error.html", error=error)
    else:
        response.data = strict_json({"error": error.name, "message": error.description}) + "\n"
        response.content_type = "application/json"
    if request.path == "/metrics":
        response.vary.add("Accept")
    return response


def _unforeseen(error: Exception) -> Response:
    """A fault of ours: the traceback goes to the log and nowhere else."""
    current_app.logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return _http_error(InternalServerError("this page could not be made; the log of metrics says why"))


def _harden(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"  # no-referrer makes a form say Origin: null
    if request.endpoint != "static":
        response.headers["Cache-Control"] = "no-store"
    return response
