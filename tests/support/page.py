"""A strict look at an HTML page: every element closed, every id once, nothing fetched from anywhere."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "br", "wbr", "hr", "img", "link", "input"}
_ADDRESSES = {"href", "src", "action", "data", "poster", "srcset", "xlink:href"}


@dataclass(frozen=True, slots=True)
class Page:
    """What was found in a page that is well formed."""

    text: str
    ids: tuple[str, ...]
    elements: tuple[str, ...]
    addresses: tuple[str, ...]
    """Values of all attributes that a browser would follow."""
    references: tuple[str, ...] = field(default=())
    """Ids that something in the page refers to."""


def read_page(html: str) -> Page:
    """Return what is in a page; raises AssertionError where an element is not closed or closes another."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [], f"left open: {reader.open}"
    return Page(
        text=" ".join("".join(reader.texts).split()),
        ids=tuple(reader.ids),
        elements=tuple(reader.elements),
        addresses=tuple(reader.addresses),
        references=tuple(reader.references),
    )


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.elements: list[str] = []
        self.addresses: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.open or tag in _VOID, f"<{tag}/> closes nothing in HTML"
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"<{tag}> has an attribute twice: {names}"
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in _ADDRESSES:
                (self.references if (value or "").startswith("#") else self.addresses).append(
                    (value or "").removeprefix("#")
                )
            if value and "url(#" in value:
                self.references.append(value.split("url(#")[1].split(")")[0])
