"""Open pages in a browser, wide and narrow, light and dark, and print as JSON what a reader would see.

Runs with the Python of the environment that ``install.sh`` makes: ``python look.py FOLDER PAGE…`` also leaves a
screenshot of each in the folder.
"""

import json
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright  # type: ignore[import-not-found]

WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
# So that the browser itself calls nobody, and asks for no more shared memory than a container has.
FLAGS = ("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage")
SEEN = """() => {
  const root = document.documentElement, found = {
    scroll_width: root.scrollWidth, width: root.clientWidth, plots: {}, cut: [], overlapping: [], silent: [], stuck: []};
  const shown = box => box.width > 0 && box.height > 0;
  for (const figure of document.querySelectorAll('figure')) {
    const title = figure.previousElementSibling, name = title.id || title.textContent;
    const drawings = [...figure.querySelectorAll('svg')].filter(each => shown(each.getBoundingClientRect()));
    found.plots[name] = drawings.map(each => each.getBoundingClientRect()).map(box => [box.width, box.height]);
    for (const drawing of drawings) {
      if (drawing.getAttribute('role') !== 'img' || !drawing.getAttribute('aria-label')) found.silent.push(name);
      const area = drawing.getBoundingClientRect();
      const words = [...drawing.querySelectorAll('text')].map(each => [each.textContent, each.getBoundingClientRect()]);
      for (const [word, box] of words)
        if (box.left < area.left - 1 || box.right > area.right + 1 || box.top < area.top - 1 || box.bottom > area.bottom + 1)
          found.cut.push([name, word]);
      words.forEach(([word, box], place) => words.slice(0, place).forEach(([other, its]) => {
        const across = Math.min(box.right, its.right) - Math.max(box.left, its.left);
        const down = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
        if (across > 1 && down > 3) found.overlapping.push([name, word, other]);
      }));
    }
  }
  for (const each of document.querySelectorAll('body *'))
    if (each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX === 'auto' && each.tabIndex !== 0)
      found.stuck.push(each.tagName);
  return found;
}"""


def look(browser: Browser, page: Path, folder: Path) -> list[dict[str, Any]]:
    """Return what is seen of a page for each width and scheme."""
    found = []
    for width in WIDTHS:
        for scheme in SCHEMES:
            context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
            tab = context.new_page()
            said: list[str] = []
            asked: list[str] = []
            tab.on("console", lambda message, said=said: said.append(f"{message.type}: {message.text}"))
            tab.on("pageerror", lambda error, said=said: said.append(str(error)))
            tab.on("request", lambda request, asked=asked: asked.append(request.url))
            tab.goto(page.as_uri(), wait_until="load")
            seen = tab.evaluate(SEEN)
            tab.screenshot(path=folder / f"{page.stem}-{width}-{scheme}.png", full_page=True)
            others = [url for url in asked if url != page.as_uri()]
            found.append(
                {
                    "page": page.name,
                    "viewport": width,
                    "scheme": scheme,
                    "said": said,
                    "asked": others,
                    **seen,
                }
            )
            context.close()
    return found


def main() -> None:
    """Look at each page."""
    folder, pages = Path(sys.argv[1]), [Path(name).resolve() for name in sys.argv[2:]]
    path = (Path(sys.prefix) / ".browser").read_text(encoding="utf-8").strip()
    with sync_playwright() as program:
        browser = program.chromium.launch(executable_path=path, args=list(FLAGS))
        found = [seen for page in pages for seen in look(browser, page, folder)]
        browser.close()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
