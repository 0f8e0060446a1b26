from __future__ import annotations

import pytest

from envs.web.origin import origin_of, resolve
from tools.errors import ToolError

BASE = "http://shop.test/cart?x=1"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("/a", "http://shop.test/a"),
        ("b?c=d#e", "http://shop.test/b?c=d"),
        ("http://SHOP.test:80/", "http://SHOP.test:80/"),
        ("", "http://shop.test/cart?x=1"),
    ],
)
def test_addresses_of_the_origin_resolve(url: str, found: str) -> None:
    assert resolve(BASE, url) == found


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "view-source:http://shop.test/",
        "javascript:alert(1)",
        "java\nscript:alert(1)",
        "data:text/html,x",
        "about:blank",
        "blob:http://shop.test/1",
        "http://shop.test:8080/",
        "https://shop.test/",
        "http://shop.test@example.com/",
        "http://user@shop.test/",
        "//example.com/",
        "http:\\\\example.com",
        "http://shop.test.example.com/",
        "http://[::1",
        "http://shop.test:99999/",
        "ws://shop.test/",
        "/" + "a" * 3000,
        "/\x00",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(ToolError):
        resolve(BASE, url)


def test_an_origin_has_scheme_host_and_port() -> None:
    assert origin_of("http://shop.test/") == origin_of("http://shop.test:80/x") == ("http", "shop.test", 80)
    assert origin_of("http://shop.test:81/") != origin_of("http://shop.test/")
    assert origin_of("file:///x") is None
