"""The shop: a catalogue, a cart, a checkout. Prices come from the database, never from a form."""

from __future__ import annotations

from functools import cache
from math import ceil

from fastapi import FastAPI
from fastapi.responses import Response
from sqlalchemy import Column, Integer, MetaData, String, Table, and_, delete, func, insert, select

from envs.web.sites.base import Call, NotFound, SiteApp, account_tables, number, see
from envs.web.world import Row

METADATA = MetaData()
account_tables(METADATA)
PRODUCTS = Table(
    "products",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False),
    Column("category", String, nullable=False),
    Column("cents", Integer, nullable=False),
    Column("stars", Integer, nullable=False),
    Column("stock", Integer, nullable=False),
    Column("sizes", String, nullable=False),
)
CART = Table(
    "cart",
    METADATA,
    Column("owner", String, primary_key=True),
    Column("product_id", Integer, primary_key=True),
    Column("size", String, primary_key=True),
    Column("quantity", Integer, nullable=False),
)
ORDERS = Table(
    "orders",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("owner", String, nullable=False),
    Column("name", String, nullable=False),
    Column("address", String, nullable=False),
    Column("delivery", String, nullable=False),
    Column("gift", Integer, nullable=False),
    Column("cents", Integer, nullable=False),
    Column("placed_at", String, nullable=False),
)
LINES = Table(
    "order_lines",
    METADATA,
    Column("order_id", Integer, primary_key=True),
    Column("product_id", Integer, primary_key=True),
    Column("size", String, primary_key=True),
    Column("quantity", Integer, nullable=False),
    Column("cents", Integer, nullable=False),
)
DELIVERIES = ("standard", "express", "pick-up")
PAGE = 10
MAX_QUANTITY = 20
SORTS = {"name": PRODUCTS.c.name, "price": PRODUCTS.c.cents, "stars": PRODUCTS.c.stars.desc()}
_site = SiteApp("shop")


@cache
def app() -> FastAPI:
    """The application; `envs.web.sites.base.bind` gives it a world."""
    return _site.app


def owner(call: Call) -> str:
    """Whose cart this is: the user's, or the session's."""
    return f"user {call.user['id']}" if call.user else f"guest {call.session}"


@_site.get("/")
def home(call: Call) -> Response:
    """Categories and the first products."""
    names = sorted({str(row["category"]) for row in call.all(select(PRODUCTS.c.category))})
    return _site.page(call, "home.html", categories=names, products=call.all(select(PRODUCTS).limit(6)))


@_site.get("/catalogue")
def catalogue(call: Call) -> Response:
    """Products by category and words, ten a page."""
    chosen = {key: call.query.get(key, "") for key in ("category", "words", "sort")}
    rules = []
    if chosen["category"]:
        rules.append(PRODUCTS.c.category == chosen["category"])
    if chosen["words"]:
        rules.append(func.lower(PRODUCTS.c.name).contains(chosen["words"].strip().lower(), autoescape=True))
    order = SORTS.get(chosen["sort"], PRODUCTS.c.id)
    found = call.all(select(PRODUCTS).where(and_(True, *rules)).order_by(order, PRODUCTS.c.id))
    pages = max(1, ceil(len(found) / PAGE))
    page = min(max(1, number(call.query.get("page"), 1)), pages)
    shown = found[(page - 1) * PAGE : page * PAGE]
    names = sorted({str(row["category"]) for row in call.all(select(PRODUCTS.c.category))})
    return _site.page(
        call,
        "catalogue.html",
        products=shown,
        chosen=chosen,
        categories=names,
        sorts=list(SORTS),
        page=page,
        pages=pages,
        found=len(found),
    )


@_site.get("/product/{key}")
def product(call: Call, key: str) -> Response:
    """One product, with a form that puts it into the cart."""
    return _show_product(call, _product(call, key), "")


def _product(call: Call, key: str) -> Row:
    return call.one(select(PRODUCTS).where(PRODUCTS.c.id == number(key)))


def _show_product(call: Call, row: Row, error: str) -> Response:
    sizes = row["sizes"].split() if row["sizes"] else []
    return _site.page(call, "product.html", product=row, sizes=sizes, error=error)


@_site.post("/product/{key}")
def add(call: Call, key: str) -> Response:
    """Put a product into the cart."""
    row = _product(call, key)
    wanted, size = number(call.form.get("quantity"), 0), call.form.get("size", "")
    sizes = row["sizes"].split() if row["sizes"] else [""]
    if size not in sizes:
        return _show_product(call, row, f"Choose a size: {', '.join(sizes)}.")
    where = and_(CART.c.owner == owner(call), CART.c.product_id == row["id"], CART.c.size == size)
    already = sum(line["quantity"] for line in call.all(select(CART).where(where)))
    if not 1 <= wanted <= MAX_QUANTITY - already:
        return _show_product(call, row, f"The quantity is 1 to {MAX_QUANTITY} in all.")
    if row["stock"] < wanted + already:
        return _show_product(call, row, f"There are only {row['stock']} left.")
    call.db.execute(delete(CART).where(where))
    call.db.execute(
        insert(CART).values(owner=owner(call), product_id=row["id"], size=size, quantity=wanted + already)
    )
    return see("/cart")


def _lines(call: Call) -> list[Row]:
    joined = select(CART, PRODUCTS.c.name, PRODUCTS.c.cents).join(
        PRODUCTS, PRODUCTS.c.id == CART.c.product_id
    )
    return call.all(joined.where(CART.c.owner == owner(call)).order_by(PRODUCTS.c.id, CART.c.size))


def _total(lines: list[Row]) -> int:
    return sum(line["cents"] * line["quantity"] for line in lines)


@_site.get("/cart")
def cart(call: Call) -> Response:
    """What is in the cart."""
    lines = _lines(call)
    return _site.page(call, "cart.html", lines=lines, total=_total(lines))


@_site.post("/cart/remove")
def remove(call: Call) -> Response:
    """Take a product out of the cart."""
    what = CART.c.product_id == number(call.form.get("product_id"))
    call.db.execute(
        delete(CART).where(CART.c.owner == owner(call), what, CART.c.size == call.form.get("size", ""))
    )
    return see("/cart")


@_site.get("/checkout")
def checkout(call: Call) -> Response:
    """The form that makes an order of the cart."""
    return _show_checkout(call, "")


def _show_checkout(call: Call, error: str) -> Response:
    lines = _lines(call)
    return _site.page(
        call,
        "checkout.html",
        lines=lines,
        total=_total(lines),
        deliveries=DELIVERIES,
        form=call.form,
        error=error,
    )


@_site.post("/checkout")
def order(call: Call) -> Response:
    """Order what is in the cart, at the database's prices."""
    lines = _lines(call)
    name, address = call.form.get("name", "").strip(), call.form.get("address", "").strip()
    delivery = call.form.get("delivery", "")
    if not lines or not name or not address or delivery not in DELIVERIES:
        return _show_checkout(
            call, "An order needs something in the cart, a name, an address and a delivery."
        )
    placed = call.db.execute(
        insert(ORDERS).values(
            owner=owner(call),
            name=name,
            address=address,
            delivery=delivery,
            gift=int(call.form.get("gift", "") == "yes"),
            cents=_total(lines),
            placed_at=call.world.now,
        )
    )
    (key,) = placed.inserted_primary_key or (0,)
    kept = ("product_id", "size", "quantity", "cents")
    call.db.execute(insert(LINES), [{"order_id": key, **{k: line[k] for k in kept}} for line in lines])
    call.db.execute(delete(CART).where(CART.c.owner == owner(call)))
    return see(f"/order/{key}")


@_site.get("/order/{key}")
def placed(call: Call, key: str) -> Response:
    """One of the visitor's own orders."""
    row = call.one(select(ORDERS).where(ORDERS.c.id == number(key)))
    if row["owner"] != owner(call):
        raise NotFound
    joined = select(LINES, PRODUCTS.c.name).join(PRODUCTS, PRODUCTS.c.id == LINES.c.product_id)
    return _site.page(
        call, "order.html", order=row, lines=call.all(joined.where(LINES.c.order_id == row["id"]))
    )
