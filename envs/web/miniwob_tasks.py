"""Which MiniWoB++ pages are played, by which way, and why the others are not."""

from __future__ import annotations

from collections.abc import Mapping

from envs.web import miniwob_forms as forms
from envs.web import miniwob_sites as sites
from envs.web.miniwob_pages import Solver

GOLDS: Mapping[str, Solver] = {
    "ascending-numbers": sites.ascending,
    "buy-ticket": sites.ticket,
    "choose-date": sites.calendar,
    "choose-date-easy": sites.calendar,
    "choose-date-medium": sites.calendar,
    "choose-date-nodelay": sites.calendar,
    "choose-list": forms.choose,
    "click-button": forms.buttons,
    "click-button-sequence": forms.buttons,
    "click-checkboxes": forms.checkboxes,
    "click-checkboxes-large": forms.checkboxes,
    "click-checkboxes-transfer": forms.checkboxes,
    "click-collapsible": sites.section,
    "click-collapsible-2": sites.hidden_link,
    "click-collapsible-2-nodelay": sites.hidden_link,
    "click-collapsible-nodelay": sites.section,
    "click-dialog": sites.dialog,
    "click-dialog-2": sites.dialog,
    "click-link": sites.link,
    "click-option": forms.option,
    "click-tab": sites.tab,
    "click-tab-2": sites.hidden_link,
    "click-tab-2-easy": sites.hidden_link,
    "click-tab-2-hard": sites.hidden_link,
    "click-tab-2-medium": sites.hidden_link,
    "click-test": forms.buttons,
    "click-test-2": forms.buttons,
    "click-test-transfer": forms.buttons,
    "copy-paste": forms.copy,
    "copy-paste-2": forms.copy,
    "email-inbox": sites.mail,
    "email-inbox-delete": sites.mail,
    "email-inbox-forward": sites.mail,
    "email-inbox-forward-nl": sites.mail,
    "email-inbox-important": sites.mail,
    "email-inbox-noscroll": sites.mail,
    "email-inbox-reply": sites.mail,
    "email-inbox-star-reply": sites.mail,
    "enter-date": forms.date,
    "enter-password": forms.texts,
    "enter-text": forms.texts,
    "enter-text-2": forms.cased,
    "enter-text-dynamic": forms.texts,
    "enter-time": forms.time,
    "find-word": forms.nth_word,
    "focus-text": forms.focus,
    "focus-text-2": forms.focus,
    "form-sequence-2": forms.sequence,
    "generate-number": forms.generate,
    "guess-number": forms.guess,
    "login-user": forms.texts,
    "login-user-popup": forms.texts,
    "multi-layouts": forms.films,
    "multi-orderings": forms.films,
    "navigate-tree": sites.tree,
    "odd-or-even": forms.odd_or_even,
    "phone-book": sites.contact,
    "read-table": sites.table,
    "read-table-2": sites.table,
    "scroll-text": forms.last_word,
    "search-engine": sites.results,
    "simple-algebra": forms.arithmetic,
    "simple-arithmetic": forms.arithmetic,
    "social-media-all": sites.posts,
    "social-media-some": sites.posts,
    "text-transform": forms.letters,
    "unicode-test": forms.buttons,
    "use-autocomplete": forms.autocomplete,
    "use-autocomplete-nodelay": forms.autocomplete,
    "use-spinner": forms.spinner,
    "visual-addition": forms.blocks,
}
_WHY: Mapping[str, str] = {
    "it is asked for in words of many people that no rule reads": "email-inbox-nl-turk email-inbox-forward-nl-turk",
    "it is about colours, shapes or places that lines of text do not tell": (
        "bisect-angle circle-center click-color click-pie click-pie-nodelay click-shades click-shape "
        "count-shape count-sides draw-circle draw-line find-midpoint grid-coordinate highlight-text "
        "highlight-text-2 hot-cold identify-shape number-checkboxes right-angle use-colorwheel "
        "use-colorwheel-2"
    ),
    "it needs the mouse to drag, hover, follow or scroll": (
        "chase-circle click-menu click-menu-2 daily-calendar drag-box drag-circle drag-cube "
        "drag-items drag-items-grid drag-shapes drag-shapes-2 drag-single-shape drag-sort-numbers "
        "form-sequence hover-shape moving-items resize-textarea scroll-text-2 sign-agreement "
        "text-editor"
    ),
    "it is about time, and the page's clock stands still": "button-delay simon-says stock-market",
    "it needs several options of a list at once": "click-scroll-list",
    "its widgets of different kinds read alike as text": "click-widget form-sequence-3",
    "it asks for knowledge that no rule has: synonyms, dishes": "click-checkboxes-soft order-food",
    "it may take more presses of a key than an episode has turns": "use-slider use-slider-2",
    "its cards cannot be told apart as text": "find-greatest",
    "its buttons change their size under the pointer": "social-media",
    "nobody can force a win": "tic-tac-toe",
    "its gold is not written yet": "book-flight book-flight-nodelay terminal",
}
EXCLUDED: Mapping[str, str] = {name: why for why, names in _WHY.items() for name in names.split()}
"""Pages that are not played, and why."""
