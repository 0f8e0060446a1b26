"""What the generated databases are about: concepts with their column names, and domains of three tables.

Questions speak of *concepts* ("town"); each database stores a concept under one of its synonyms ("city"), so a
column name can be learned from the database only. No column name belongs to two concepts.

    A  (who)   ---<   F  (event)   >---   B  (what)          A and B are the dimensions, F holds the events
"""

from __future__ import annotations

from dataclasses import dataclass

SYNONYMS: dict[str, tuple[str, ...]] = {
    "name": ("name", "title", "label"),
    # categories
    "town": ("town", "city", "place"),
    "country": ("country", "land", "nation"),
    "kind": ("kind", "type", "class"),
    "color": ("color", "shade", "tint"),
    "genre": ("genre", "topic", "theme"),
    "team": ("team", "crew", "squad"),
    "rank": ("rank", "grade", "tier"),
    "field": ("field", "branch", "sector"),
    "maker": ("maker", "brand", "firm"),
    "language": ("language", "lang", "tongue"),
    # numbers
    "price": ("price", "cost", "fee"),
    "age": ("age", "years", "oldness"),
    "size": ("size", "area", "volume"),
    "pages": ("pages", "leaves", "sheets"),
    "weight": ("weight", "mass", "load"),
    "length": ("length", "minutes", "duration"),
    "salary": ("salary", "pay", "wage"),
    "height": ("height", "tallness", "stature"),
    # measures of events
    "amount": ("amount", "quantity", "units"),
    "fine": ("fine", "penalty", "charge"),
    "delay": ("delay", "lag", "lateness"),
    "dose": ("dose", "portion", "grams"),
    "score": ("score", "mark", "points"),
    "nights": ("nights", "stay", "span"),
    "rating": ("rating", "stars", "vote"),
    # dates
    "joined": ("joined", "since", "signup"),
    "founded": ("founded", "created", "opened"),
    "day": ("day", "date", "held_on"),
    # labels of events
    "status": ("status", "state", "stage"),
    "channel": ("channel", "medium", "route"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A table of things: one name, two categories, one number and one date, each given as a concept."""

    noun: str
    """The word of questions, in the plural."""
    one: str
    tables: tuple[str, ...]
    """Names that the table may have."""
    cat: str
    cat2: str
    num: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A table of events that refer to both dimensions: a number, a date and a label, all but the date nullable."""

    noun: str
    tables: tuple[str, ...]
    num: str
    date: str
    flag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A schema: who (A), what (B) and the events between them (F)."""

    name: str
    a: Dimension
    b: Dimension
    f: Event


def _dimension(noun: str, one: str, tables: str, cat: str, cat2: str, num: str, date: str) -> Dimension:
    return Dimension(
        noun=noun, one=one, tables=(noun, *tables.split()), cat=cat, cat2=cat2, num=num, date=date
    )


def _event(noun: str, tables: str, num: str, flag: str) -> Event:
    return Event(noun=noun, tables=(noun, *tables.split()), num=num, date="day", flag=flag)


DOMAINS: tuple[Domain, ...] = (
    Domain(
        name="shop",
        a=_dimension("customers", "customer", "clients buyers", "town", "rank", "age", "joined"),
        b=_dimension("products", "product", "goods wares", "kind", "color", "price", "founded"),
        f=_event("orders", "sales purchases", "amount", "status"),
    ),
    Domain(
        name="library",
        a=_dimension("members", "member", "readers patrons", "town", "team", "age", "joined"),
        b=_dimension("books", "book", "volumes novels", "genre", "language", "pages", "founded"),
        f=_event("loans", "lendings borrowings", "fine", "status"),
    ),
    Domain(
        name="flights",
        a=_dimension("airlines", "airline", "carriers companies", "country", "rank", "size", "founded"),
        b=_dimension("airports", "airport", "fields hubs", "town", "kind", "height", "founded"),
        f=_event("flights", "departures trips", "delay", "status"),
    ),
    Domain(
        name="hospital",
        a=_dimension("patients", "patient", "cases people", "town", "kind", "weight", "joined"),
        b=_dimension("doctors", "doctor", "medics physicians", "field", "rank", "salary", "joined"),
        f=_event("visits", "treatments checkups", "dose", "channel"),
    ),
    Domain(
        name="school",
        a=_dimension("students", "student", "pupils learners", "team", "town", "age", "joined"),
        b=_dimension("courses", "course", "lessons subjects", "field", "language", "length", "founded"),
        f=_event("exams", "tests papers", "score", "status"),
    ),
    Domain(
        name="hotel",
        a=_dimension("guests", "guest", "visitors travelers", "country", "rank", "age", "joined"),
        b=_dimension("rooms", "room", "suites chambers", "kind", "color", "price", "founded"),
        f=_event("stays", "bookings reservations", "nights", "channel"),
    ),
    Domain(
        name="cinema",
        a=_dimension("viewers", "viewer", "fans audience", "town", "team", "age", "joined"),
        b=_dimension("films", "film", "movies pictures", "genre", "language", "length", "founded"),
        f=_event("reviews", "opinions critiques", "rating", "channel"),
    ),
    Domain(
        name="garage",
        a=_dimension("drivers", "driver", "owners renters", "country", "team", "age", "joined"),
        b=_dimension("cars", "car", "vehicles autos", "maker", "color", "weight", "founded"),
        f=_event("repairs", "services fixes", "amount", "status"),
    ),
)
