"""Forms for people: sign in with the token, ask a trainer for something, sign out."""

from dataclasses import dataclass
from typing import cast
from urllib.parse import urlencode, urlsplit

from flask import Flask, g, make_response, redirect, render_template, request
from pydantic import ValidationError
from werkzeug.exceptions import BadRequest, Forbidden, ServiceUnavailable
from werkzeug.wrappers import Response as AnyResponse

from services.core.models import RequestKind
from services.metrics.api.reader import Reader
from services.metrics.api.requests import HOW_TO_OPEN, NewRequest, address, refuse_foreign
from services.metrics.writes import asking, origin
from services.metrics.writes.access import COOKIE, LONGEST_NAME, SESSION, Access, Answer, Session
from services.metrics.writes.asking import Asked
from services.metrics.writes.commands import command

WAIT = 1.5  # seconds a form waits for its answer before it shows that it is under way
OUTCOME = "asked"  # parameter of the page that shows what came of a request
FIELDS = ("kind", "track", "adapter", "target", "reason")


@dataclass(frozen=True)
class Writing:
    """What templates/act.html knows of a request: whether its sender may write, and what it asked for."""

    is_open: bool  # a token is set
    session: Session | None
    here: str  # path and query of this page, to come back to
    asked: Asked | None  # whose outcome this page shows


def add_writes(app: Flask, reader: Reader, access: Access) -> None:
    """Add /login, /logout and /act, and for templates `writing()` and `command()`."""
    _add_session(app, access)

    @app.post("/act")
    def act() -> AnyResponse:
        """Ask for what the form says, and go back to its page, which shows what came of it."""
        _only_our_forms()
        back = origin.place(request.form.get("back"))
        if not access.is_open:
            raise Forbidden(HOW_TO_OPEN)
        session = access.session(request.cookies.get(COOKIE))
        if session is None:
            return redirect(f"/login?{urlencode({'back': back})}", 303)
        said = {name: value for name in FIELDS if (value := request.form.get(name, "").strip())}
        try:
            wish = NewRequest.model_validate({**said, "actor": session.actor}).wish()
        except ValidationError as exc:
            first = exc.errors()[0]
            raise BadRequest(f"{first['loc'][0]}={first['input']!r}: {first['msg']}") from exc
        asked = asking.answered(reader, asking.ask(reader, wish), WAIT)
        return redirect(f"{back}{'&' if '?' in back else '?'}{OUTCOME}={asked.id}", 303)

    def writing() -> Writing:
        """The same to every button of a page."""
        if "writing" not in g:
            session = access.session(request.cookies.get(COOKIE))
            g.writing = Writing(access.is_open, session, _here(), _outcome(reader))
        return cast(Writing, g.writing)

    app.jinja_env.globals.update(writing=writing, command=command, RequestKind=RequestKind)


def _add_session(app: Flask, access: Access) -> None:
    @app.get("/login")
    def login() -> str:
        return _form(access, origin.place(request.args.get("back")), None)

    @app.post("/login")
    def sign_in() -> AnyResponse:
        _only_our_forms()
        if not access.is_open:
            raise Forbidden(HOW_TO_OPEN)
        back = origin.place(request.form.get("back"))
        match access.guess(request.form.get("token", ""), address()):
            case Answer.WRONG:
                return make_response(_form(access, back, "This is not the token."), 401)
            case Answer.WAIT:
                seconds = access.wait(address())
                wait = f"Too many wrong tokens: try again in {seconds} s."
                answer = make_response(_form(access, back, wait), 429)
                answer.headers["Retry-After"] = str(seconds)
                return answer
        name = "".join(filter(str.isprintable, request.form.get("name", ""))).strip()[:LONGEST_NAME]
        response = redirect(back, 303)
        _set_cookie(response, access.begin(name or "dashboard"), SESSION)
        return response

    @app.post("/logout")
    def sign_out() -> AnyResponse:
        _only_our_forms()
        response = redirect(origin.place(request.form.get("back")), 303)
        _set_cookie(response, "", 0)
        return response


def _form(access: Access, back: str, problem: str | None) -> str:
    return render_template("login.html", is_open=access.is_open, how=HOW_TO_OPEN, back=back, problem=problem)


def _set_cookie(response: AnyResponse, value: str, seconds: int) -> None:
    response.set_cookie(
        COOKIE, value, max_age=seconds, httponly=True, samesite="Strict", secure=request.is_secure, path="/"
    )


def _only_our_forms() -> None:
    """Answers 403 unless a page of this site has sent this: every browser says where from."""
    refuse_foreign()
    if not origin.is_browsers(request.headers):
        raise Forbidden("forms are for browsers: send JSON to /api/v1/requests, with the token")


def _here() -> str:
    """This page's path and query without the outcome of an earlier request."""
    kept = [(name, value) for name, value in request.args.items(multi=True) if name != OUTCOME]
    path = urlsplit(request.path).path
    return origin.place(f"{path}?{urlencode(kept)}" if kept else path)


def _outcome(reader: Reader) -> Asked | None:
    said = request.args.get(OUTCOME, "")
    if not (said.isascii() and said.isdecimal() and len(said) < 19):
        return None
    try:
        return asking.find(reader, int(said))
    except ServiceUnavailable:  # the page says itself that the database is away
        return None
