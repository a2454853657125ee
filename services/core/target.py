"""Where PostgreSQL is, and as whom to log in."""

from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from services.core.errors import ConfigurationError


class Target(BaseModel):
    """A database and a login of it; in words without the password."""

    model_config = ConfigDict(frozen=True)
    host: str
    port: int = Field(ge=1, le=65535)
    dbname: str
    user: str
    password: SecretStr

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}/{self.dbname}"


def from_url(url: str) -> Target:
    """Of postgres[ql]://user:password@host[:port]/name.

    Raises ConfigurationError, whose message never repeats the password.
    """
    wanted = "DATABASE_URL must read postgresql://USER:PASSWORD@HOST[:PORT]/NAME"
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError as exc:
        raise ConfigurationError(f"{wanted} ({exc})") from exc
    needed = {
        "scheme postgresql://": parts.scheme in ("postgres", "postgresql"),
        "user": parts.username,
        "password": parts.password,
        "host": parts.hostname,
        "database name": parts.path.strip("/"),
    }
    if missing := [what for what, there in needed.items() if not there]:
        raise ConfigurationError(f"{wanted}: {', '.join(missing)} missing")
    return Target(
        host=str(parts.hostname),
        port=port,
        dbname=unquote(parts.path.strip("/")),
        user=unquote(str(parts.username)),
        password=SecretStr(unquote(str(parts.password))),
    )
