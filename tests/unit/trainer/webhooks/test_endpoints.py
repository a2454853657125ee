"""The addresses in WEBHOOK_URLS, and what of them may be seen."""

import pytest

from services.core.errors import ConfigurationError
from services.core.settings import from_environment
from services.trainer.webhooks.endpoints import Endpoint, from_settings
from tests.receiver import SECRET


def of(urls: str, **more: str) -> tuple[Endpoint, ...]:
    return from_settings(from_environment({"WEBHOOK_URLS": urls, "WEBHOOK_SECRET": SECRET, **more}))


def test_without_addresses_there_are_no_endpoints_and_no_secret_is_needed() -> None:
    assert from_settings(from_environment({})) == ()


def test_an_address_is_taken_apart() -> None:
    """User and password become a header; the query stays with the path."""
    (endpoint,) = of("https://sam:s%40fe@hooks.example:8443/a/b?token=t1")
    assert (endpoint.scheme, endpoint.host, endpoint.port) == ("https", "hooks.example", 8443)
    assert endpoint.target == "/a/b?token=t1"
    assert endpoint.authorization == "Basic c2FtOnNAZmU="


def test_ports_and_path_have_defaults() -> None:
    first, second = of("https://one.example, http://two.example")
    assert (first.port, second.port, first.target) == (443, 80, "/")


def test_the_name_outlives_a_new_password_but_not_a_new_path() -> None:
    """What waits for an endpoint goes to it still when its token was changed."""
    names = [
        endpoint.name
        for url in (
            "https://u:one@h.example/a?token=1",
            "https://u:two@h.example/a?token=2",
            "https://h.example/b",
        )
        for endpoint in of(url)
    ]
    assert names[0] == names[1] != names[2]
    assert all(name.startswith("h.example#") for name in names)


def test_nothing_of_an_address_but_its_host_shows() -> None:
    """In no name and no repr."""
    (endpoint,) = of("https://user:passw0rd@h.example/services/T0/B0?token=hidden")
    for secret in ("passw0rd", "services", "T0", "hidden", "Basic"):
        assert secret not in f"{endpoint!r} {endpoint} {endpoint.name}"


def test_two_addresses_that_could_not_be_told_apart_are_an_error_without_their_secrets() -> None:
    with pytest.raises(ConfigurationError, match=r"h\.example#\w+ more than once") as caught:
        of("https://h.example/a?token=one,https://h.example/a?token=two")
    assert "token" not in str(caught.value)


def test_unsigned_messages_are_for_chats_alone() -> None:
    """The standard format without a secret is an error that says how to make one."""
    without = {"WEBHOOK_URLS": "https://h.example/a"}
    with pytest.raises(ConfigurationError, match="WEBHOOK_SECRET is not"):
        from_settings(from_environment(without))
    assert from_settings(from_environment({**without, "WEBHOOK_FORMAT": "slack"}))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/x",
        "https:///x",
        "h.example/x",
        "https://h:0/x",
        "https://[::1/x",
        "https://h/\u00e9",
        "https://h/a b",
    ],
)
def test_what_is_no_address_is_an_error_that_does_not_repeat_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"WEBHOOK_URLS='\*\*\*'.*address 2 of them") as caught:
        from_environment({"WEBHOOK_URLS": f"https://fine.example/s3cret,{url}"})
    assert "s3cret" not in str(caught.value)
    assert url not in str(caught.value)


@pytest.mark.parametrize(
    "secret", ["whsec_c2hvcnQ=", "c2VjcmV0LW9mLTMyLWJ5dGVzLWZvci10ZXN0cw==", "whsec_no!base64"]
)
def test_what_is_no_signing_secret_is_an_error_that_does_not_repeat_it(secret: str) -> None:
    with pytest.raises(ConfigurationError, match=r"WEBHOOK_SECRET='\*\*\*'.*24 to 64 random bytes") as caught:
        from_environment({"WEBHOOK_SECRET": secret})
    assert secret not in str(caught.value)
    assert secret not in repr(caught.value.__cause__)
    assert secret not in str(caught.value.__cause__)


def test_an_unknown_group_of_events_is_an_error_with_the_known() -> None:
    with pytest.raises(ConfigurationError, match=r"refusl: expected some of start, promotion, refusal"):
        from_environment({"WEBHOOK_EVENTS": "promotion,refusl"})


def test_the_log_leaves_out_the_secret_and_all_of_an_address_that_may_be_one() -> None:
    url = "https://u:p%40ssword1@h.example/services/T000/B000?token=tok3n-value"
    held = from_environment({"WEBHOOK_URLS": url, "WEBHOOK_SECRET": SECRET}).secrets()
    assert {SECRET, "p@ssword1", "p%40ssword1", "services/T000/B000", "tok3n-value"} <= set(held)
