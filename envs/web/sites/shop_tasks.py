"""Worlds and goals of the shop."""

from __future__ import annotations

from random import Random

from envs.web.plans import Change, Draw, Plan, SiteSpec, Step, Way, credentials, log_in, users
from envs.web.sites import shop
from envs.web.sites.words import Words
from envs.web.world import Row, Rows

CATEGORIES = ("lamps", "shoes", "bags", "books", "tools", "games")
SIZED = ("shoes", "bags")
SIZES = "S M L XL"


def fill(rng: Random, words: Words, level: int) -> Rows:
    """Six products at level 0, twelve at level 1, forty above; at level 3 something lies in the user's cart."""
    people = users(rng, words, 3)
    count = (6, 12, 40, 40)[level]
    categories = rng.sample(CATEGORIES, 3 if level < 2 else 5)
    cents = rng.sample(range(500, 20000, 5), count)
    stars = rng.sample(range(5, 50), count)
    products = []
    for key in range(1, count + 1):
        category = categories[key % len(categories)]
        products.append(
            {
                "id": key,
                "name": f"{words.name()} {category.removesuffix('s')}",
                "category": category,
                "cents": cents[key - 1],
                "stars": stars[key - 1],
                "stock": 0 if level >= 2 and rng.random() < 0.25 else rng.randrange(10, 90),
                "sizes": SIZES if level >= 2 and category in SIZED else "",
            }
        )
    cart: list[Row] = []
    if level == 3:
        for row in rng.sample([p for p in products if p["stock"]], 2):
            size = rng.choice(SIZES.split()) if row["sizes"] else ""
            cart.append(
                {"owner": "user 1", "product_id": row["id"], "size": size, "quantity": rng.randrange(1, 4)}
            )
    orders = [
        {
            "id": key,
            "owner": f"user {rng.randrange(2, 4)}",
            "name": words.name(),
            "address": f"{words.name()} street {rng.randrange(1, 99)}",
            "delivery": rng.choice(shop.DELIVERIES),
            "gift": 0,
            "cents": products[key]["cents"],
            "placed_at": "2024-05-30T10:00:00",
        }
        for key in range(1, 4)
    ]
    lines = [
        {"order_id": key, "product_id": key + 1, "size": "", "quantity": 1, "cents": products[key]["cents"]}
        for key in range(1, 4)
    ]
    return {"users": people, "products": products, "cart": cart, "orders": orders, "order_lines": lines}


# ------------------------------------------------------------------------------------------------- ways

Wanted = tuple[Row, int, str]
"""Product, quantity, size."""


def _add(wanted: Wanted, find: tuple[Step, ...]) -> tuple[Step, ...]:
    row, quantity, size = wanted
    steps = [*find, ("click", "link", row["name"])]
    if size:
        steps.append(("select", "combobox", "Size", size))
    if quantity != 1:
        steps.append(("fill", "textbox", "Quantity", str(quantity)))
    return (*steps, ("click", "button", "Add to cart"))


def _search(row: Row) -> tuple[Step, ...]:
    return (
        ("click", "link", "Home"),
        ("fill", "textbox", "Search", row["name"].split()[0]),
        ("press", "textbox", "Search", "Enter"),
    )


def _sorted(category: str, sort: str) -> tuple[Step, ...]:
    return (
        ("click", "link", "Catalogue"),
        ("select", "combobox", "Category", category),
        ("select", "combobox", "Sort by", sort),
        ("click", "button", "Find"),
    )


def _cart_way(wanted: Wanted) -> Way:
    row, quantity, size = wanted
    line = {"owner": "guest 1", "product_id": row["id"], "size": size, "quantity": quantity}
    return Way(steps=_add(wanted, ()), changes=(Change("add", "cart", line),))


def _order_way(
    before: tuple[Step, ...],
    wanted: list[tuple[Wanted, tuple[Step, ...]]],
    owner: str,
    to: tuple[str, str],
    delivery: str,
    gift: bool = False,
    emptied: tuple[Row, ...] = (),
    kept: tuple[Row, ...] = (),
) -> Way:
    """Add what is wanted, check out; `emptied` lay in the cart and is gone, `kept` lay there and is ordered too."""
    steps = list(before)
    for each, find in wanted:
        steps += _add(each, find)
    steps += [
        ("click", "link", "Check out"),
        ("fill", "textbox", "Recipient", to[0]),
        ("fill", "textbox", "Address", to[1]),
    ]
    if delivery != shop.DELIVERIES[0]:
        steps.append(("select", "combobox", "Delivery", delivery))
    if gift:
        steps.append(("click", "checkbox", "Gift wrap"))
    steps.append(("click", "button", "Place order"))
    lines = [
        {"order_id": 4, "product_id": row["id"], "size": size, "quantity": quantity, "cents": row["cents"]}
        for (row, quantity, size), _ in wanted
    ] + [{"order_id": 4, **{k: row[k] for k in ("product_id", "size", "quantity", "cents")}} for row in kept]
    order = {
        "owner": owner,
        "name": to[0],
        "address": to[1],
        "delivery": delivery,
        "gift": int(gift),
        "cents": sum(line["cents"] * line["quantity"] for line in lines),
    }
    gone = [
        Change("delete", "cart", {k: row[k] for k in ("owner", "product_id", "size")})
        for row in (*emptied, *kept)
    ]
    added = [Change("add", "order_lines", line) for line in lines]
    return Way(steps=tuple(steps), changes=(Change("add", "orders", order), *added, *gone))


# ------------------------------------------------------------------------------------------------ plans


def put_in_cart(draw: Draw) -> Plan:
    """Level 0: some pieces of one product."""
    row, other = draw.rng.sample(draw.rows["products"], 2)
    quantity = draw.rng.randrange(2, 7)
    return Plan(
        text=f"Put {quantity} pieces of the {row['name']} into the cart.",
        gold=_cart_way((row, quantity, "")),
        misses={
            "other product": _cart_way((other, quantity, "")),
            "one piece": _cart_way((row, 1, "")),
            "one too many": _cart_way((row, quantity + 1, "")),
        },
    )


def order_one(draw: Draw) -> Plan:
    """Level 1: order one product to an address."""
    row, other = draw.rng.sample(draw.rows["products"], 2)
    quantity = draw.rng.randrange(2, 7)
    name, address = draw.words.name(), f"{draw.words.name()} street {draw.rng.randrange(1, 99)}"
    delivery = draw.rng.choice(shop.DELIVERIES[1:])

    def way(what: Row, pieces: int, how: str) -> Way:
        return _order_way((), [((what, pieces, ""), _search(what))], "guest 1", (name, address), how)

    return Plan(
        text=f"Order {quantity} pieces of the {row['name']} with {delivery} delivery to {name}, {address}.",
        gold=way(row, quantity, delivery),
        misses={
            "other product": way(other, quantity, delivery),
            "one piece": way(row, 1, delivery),
            "default delivery": way(row, quantity, shop.DELIVERIES[0]),
        },
    )


def _cheapest(draw: Draw, category: str, at_least: int) -> list[Row]:
    found = [p for p in draw.some("products", category=category) if p["stock"] and p["stars"] >= at_least]
    return sorted(found, key=lambda p: int(p["cents"]))


def order_cheapest(draw: Draw) -> Plan | None:
    """Level 2: as a user, the cheapest product of a category that is good enough and not sold out."""
    user = draw.rows["users"][0]
    category = draw.rng.choice(sorted({p["category"] for p in draw.rows["products"]}))
    least = draw.rng.choice((15, 20, 25, 30))
    fitting = _cheapest(draw, category, least)
    cheaper = [p for p in _cheapest(draw, category, 0) if p["stars"] < least]
    if len(fitting) < 2 or not cheaper or cheaper[0]["cents"] > fitting[0]["cents"]:
        return None
    size = draw.rng.choice(shop_sizes(fitting[0]))
    to, delivery = (draw.words.name(), f"{draw.words.name()} road {draw.rng.randrange(1, 99)}"), "express"

    def way(what: Row, how: str) -> Way:
        find = _sorted(category, "price")
        return _order_way(log_in(user), [((what, 1, size), find)], "user 1", to, how)

    asked = f" in size {size}" if size else ""
    return Plan(
        text=f"{credentials(user)} Log in and order the cheapest of the {category} that are in stock and have a rating "
        f"of at least {least / 10:.1f} stars{asked}. Send it by {delivery} delivery to {to[0]}, {to[1]}.",
        gold=way(fitting[0], delivery),
        misses={
            "cheapest of all": way(cheaper[0], delivery),
            "second cheapest": way(fitting[1], delivery),
            "default delivery": way(fitting[0], "standard"),
        },
    )


def shop_sizes(row: Row) -> list[str]:
    """The sizes of a product; one empty text where there are none."""
    return row["sizes"].split() or [""]


def order_two(draw: Draw) -> Plan | None:
    """Level 3: clear the cart, then order the best of one category and the cheapest of another, as a gift."""
    user, cart = draw.rows["users"][0], draw.rows["cart"]
    first, second = draw.rng.sample(sorted({p["category"] for p in draw.rows["products"]}), 2)
    best = sorted(
        (p for p in draw.some("products", category=first) if p["stock"]), key=lambda p: -int(p["stars"])
    )
    cheap = _cheapest(draw, second, 0)
    held = {line["product_id"] for line in cart}
    if len(best) < 2 or len(cheap) < 2 or held & {best[0]["id"], best[1]["id"], cheap[0]["id"]}:
        return None
    sizes = [draw.rng.choice(shop_sizes(best[0])), draw.rng.choice(shop_sizes(cheap[0]))]
    pieces = draw.rng.randrange(2, 5)
    to = (draw.words.name(), f"{draw.words.name()} road {draw.rng.randrange(1, 99)}")
    by_id = {p["id"]: p for p in draw.rows["products"]}
    clear = [("click", "button", f"Remove {by_id[line['product_id']]['name']}") for line in cart]

    def way(top: Row, removed: int, gift: bool) -> Way:
        size = sizes[0] if sizes[0] in shop_sizes(top) else shop_sizes(top)[0]
        wanted = [
            ((top, 1, size), _sorted(first, "stars")),
            ((cheap[0], pieces, sizes[1]), _sorted(second, "price")),
        ]
        kept = tuple({**line, "cents": by_id[line["product_id"]]["cents"]} for line in cart[removed:])
        before = (*log_in(user), ("click", "link", "Cart"), *clear[:removed])
        return _order_way(before, wanted, "user 1", to, "pick-up", gift, tuple(cart[:removed]), kept)

    named = [f" in size {size}" if size else "" for size in sizes]
    return Plan(
        text=f"{credentials(user)} Log in and remove everything that lies in your cart. Then order in one order: one "
        f"piece of the best rated of the {first} that are in stock{named[0]}, and {pieces} pieces of the cheapest of "
        f"the {second} that are in stock{named[1]}; gift wrapped, pick-up delivery, for {to[0]}, {to[1]}.",
        gold=way(best[0], len(cart), True),
        misses={
            "cart not cleared": way(best[0], 0, True),
            "second best": way(best[1], len(cart), True),
            "no gift wrap": way(best[0], len(cart), False),
        },
    )


SPEC = SiteSpec(
    name="shop",
    metadata=shop.METADATA,
    fill=fill,
    app=shop.app,
    plans={0: (put_in_cart,), 1: (order_one,), 2: (order_cheapest,), 3: (order_two,)},
)
