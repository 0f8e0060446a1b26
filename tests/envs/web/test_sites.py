"""The sites over HTTP, as somebody sees them who is not bound to the agent's tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from envs.web.loop import shared
from envs.web.plans import start_of
from envs.web.sites import all_sites
from envs.web.sites.base import COOKIE, bind
from envs.web.world import World, filled


class Client:
    """Plain requests with a cookie jar of one's own."""

    def __init__(self, world: World, site: str) -> None:
        self._app, self.cookies = bind(all_sites()[site].app(), world), dict[str, str]()

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://x.test", cookies=self.cookies
            ) as client:
                return await client.request(method, path, **options)

        response = shared().run(ask())
        self.cookies.update(response.cookies)
        return response


@contextmanager
def world_of(site: str, level: int = 2) -> Iterator[World]:
    spec = all_sites()[site]
    world = World(
        spec.metadata,
        filled(spec.metadata, start_of(spec, 3, level, "train").rows),
        now="2024-06-15T09:00:00",
        secret="s",
    )
    try:
        yield world
    finally:
        world.close()


def log_in(client: Client, world: World, number: int = 0) -> None:
    user = world.rows()["users"][number]
    client.ask("GET", "/")
    client.ask("POST", "/login", data={"name": user["name"], "password": user["password"]})


@pytest.mark.parametrize("site", ["shop", "tracker", "wiki"])
def test_there_is_no_route_that_resets_grades_or_shows_the_state(site: str) -> None:
    app = all_sites()[site].app()
    paths = {route.path for route in app.routes}
    allowed = {
        "shop": {"/catalogue", "/product/{key}", "/cart", "/cart/remove", "/checkout", "/order/{key}"},
        "tracker": {
            "/project/{key}",
            "/project/{key}/new",
            "/issue/{key}",
            "/issue/{key}/state",
            "/issue/{key}/comment",
        },
        "wiki": {
            "/category/{name}",
            "/search",
            "/page/{key}",
            "/page/{key}/history",
            "/page/{key}/edit",
            "/new",
        },
    }
    assert paths == {"/", "/login", "/logout"} | allowed[site]


@pytest.mark.parametrize("site", ["shop", "tracker", "wiki"])
def test_looking_changes_nothing(site: str) -> None:
    with world_of(site) as world:
        client, before = Client(world, site), world.rows()
        log_in(client, world)
        for path in [
            route.path.replace("{key}", "1").replace("{name}", "x")
            for route in all_sites()[site].app().routes
        ]:
            assert client.ask("GET", path + "?cents=0&body=x&quantity=3").status_code in (200, 404, 405)
        assert world.rows() == before


def test_the_price_comes_from_the_database_and_not_from_the_form() -> None:
    with world_of("shop", 1) as world:
        client, product = Client(world, "shop"), world.rows()["products"][0]
        client.ask("GET", "/")
        bought = {"quantity": "2", "cents": "1", "price": "0", "product_id": "1", "owner": "user 1"}
        client.ask("POST", "/product/1", data=bought)
        order = {
            "name": "n",
            "address": "a",
            "delivery": "express",
            "total": "0",
            "cents": "0",
            "owner": "user 1",
        }
        client.ask("POST", "/checkout", data=order)
        placed = world.rows()["orders"][-1]
        assert (placed["cents"], placed["owner"]) == (2 * product["cents"], "guest 1")


@pytest.mark.parametrize("quantity", ["-1", "0", "21", "1e3", "٣", "", "999999999999", "1.5"])
def test_quantities_are_whole_and_bounded(quantity: str) -> None:
    with world_of("shop", 1) as world:
        client = Client(world, "shop")
        client.ask("GET", "/")
        client.ask("POST", "/product/1", data={"quantity": quantity})
        assert world.rows()["cart"] == []


def test_nobody_acts_with_the_session_of_somebody_else() -> None:
    with world_of("tracker") as world:
        victim, thief = Client(world, "tracker"), Client(world, "tracker")
        log_in(victim, world)
        before = world.rows()
        for token in ("1", "user 1", "' OR 1=1 --", victim.cookies[COOKIE][:-1] + "x", "0" * 32):
            thief.cookies = {COOKIE: token}
            answer = thief.ask("POST", "/issue/1/state", data={"state": "closed"})
            assert answer.status_code == 403
        assert world.rows() == before


def test_orders_and_carts_of_others_are_not_shown() -> None:
    with world_of("shop", 3) as world:
        client = Client(world, "shop")
        client.ask("GET", "/")
        assert [client.ask("GET", f"/order/{key}").status_code for key in (1, 2, 3)] == [404] * 3
        assert "empty" in client.ask("GET", "/cart").text


@pytest.mark.parametrize(
    ("site", "path"),
    [
        ("tracker", "/issue/1/comment"),
        ("tracker", "/issue/1"),
        ("tracker", "/project/1/new"),
        ("wiki", "/page/1/edit"),
        ("wiki", "/page/0/edit"),
    ],
)
def test_changes_need_a_login(site: str, path: str) -> None:
    with world_of(site) as world:
        before = world.rows()
        form = {
            "body": "x",
            "title": "x",
            "category": "towns",
            "priority": "high",
            "user_id": "1",
            "author_id": "1",
        }
        assert Client(world, site).ask("POST", path, data=form).status_code == 403
        assert world.rows() == before


def test_what_people_write_is_shown_as_text() -> None:
    with world_of("tracker") as world:
        client = Client(world, "tracker")
        log_in(client, world)
        client.ask("POST", "/issue/1/comment", data={"body": "<script>x</script><b>"})
        assert "<script>" not in client.ask("GET", "/issue/1").text


def test_a_form_that_is_too_large_is_refused() -> None:
    with world_of("wiki") as world:
        client, before = Client(world, "wiki"), world.rows()
        log_in(client, world)
        form = {"title": "t", "category": "towns", "body": "x" * 100_000}
        assert client.ask("POST", "/page/0/edit", data=form).status_code == 413
        assert world.rows() == before


def test_an_unknown_page_is_not_found() -> None:
    with world_of("wiki") as world:
        client = Client(world, "wiki")
        assert client.ask("GET", "/page/99999").status_code == 404
        assert client.ask("GET", "/page/x' OR 1=1").status_code == 404
