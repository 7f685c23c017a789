"""A report as a page that needs nothing but itself, and as pictures for a document.

No address is in it: it opens on a train, and years later; and it tells the browser to fetch nothing. Each chart is drawn
twice, for a wide page and for a phone, since words that shrink with their drawing cannot be read there.
"""

import re
from os import fsync
from pathlib import Path
from tempfile import NamedTemporaryFile

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from hexflow_simulator.plot import all_svgs, png
from hexflow_simulator.report import Report

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{ report.title }}</title>
<style>
:root { color-scheme: light dark; --ink: #1c1e21; --page: #ffffff; --faint: #6b7075; --line: #d5d9dd; --best: #e3f1e9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6e8; --page: #16181b; --faint: #9aa0a6; --line: #3a3f45; --best: #17362a; }
}
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p, figcaption, li { max-width: 52rem; } p.lead { font-size: 1.05rem; }
p.note, figcaption, dt, .faint { color: var(--faint); } p.note + p.note { margin-top: -.6rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dd { margin: 0; overflow-wrap: anywhere; }
.rolling { overflow-x: auto; } .rolling:focus-visible { outline: 2px solid var(--faint); outline-offset: 3px; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap;
  vertical-align: baseline; }
th { vertical-align: bottom; white-space: normal; } small { display: block; font-weight: 400; color: var(--faint); } .number { text-align: right; font-variant-numeric: tabular-nums; }
tr.best td { background: var(--best); font-weight: 600; }
figure { margin: 1rem 0; } figure svg { display: block; width: 100%; max-width: 52rem; height: auto; }
figure svg.narrow { display: none; }
@media (max-width: 40rem) {
  figure svg.wide { display: none; } figure svg.narrow { display: block; }
  th, td { padding: .25rem .45rem; }
  th:first-child, td:first-child { position: sticky; left: 0; background: var(--page); padding-left: 0; max-width: 10rem;
    white-space: normal; }
}
@media print { body { max-width: none; } }
</style>
</head>
<body>
<h1>{{ report.title }}</h1>
{% for paragraph in report.summary %}
<p class="lead">{{ paragraph }}</p>
{% endfor %}
{% if report.facts %}
<dl>
{% for word, meaning in report.facts %}
<dt>{{ word }}</dt><dd>{{ meaning }}</dd>
{% endfor %}
</dl>
{% endif %}
{% for table in report.tables %}
<h2>{{ table.title }}</h2>
<div class="rolling" role="region" aria-label="{{ table.title }}" tabindex="0">
<table>
<thead><tr>
{% for column in table.columns %}
<th scope="col"{% if column.numbers %} class="number"{% endif %}>{{ column.name }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in table.rows %}
<tr{% if loop.index0 in table.best %} class="best"{% elif loop.index0 in table.faint %} class="faint"{% endif %}>
{% for cell in row %}
{% if table.columns[loop.index0].numbers %}
{% set value, range = cell | apart %}
<td class="number">{{ value }}{% if range %} <small>{{ range }}</small>{% endif %}</td>
{% else %}
<td>{{ cell | breakable }}</td>
{% endif %}
{% endfor %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
{% if table.note %}
<p class="note">{{ table.note }}</p>
{% endif %}
{% for column in table.columns if column.hint %}
<p class="note"><b>{{ column.name }}</b> {{ column.hint }}</p>
{% endfor %}
{% endfor %}
{% for chart, wide, narrow in drawn %}
<h2 id="{{ chart.name }}">{{ chart.title }}</h2>
<figure>
{{ wide }}
{{ narrow }}
{% if chart.note %}
<figcaption>{{ chart.note }}</figcaption>
{% endif %}
</figure>
{% endfor %}
{% if report.notes %}
<h2>To keep in mind</h2>
<ul>
{% for note in report.notes %}
<li>{{ note }}</li>
{% endfor %}
</ul>
{% endif %}
</body>
</html>
"""


def _apart(cell: str) -> tuple[str, str]:
    """Return a number and the range in brackets behind it, which goes below: beside it, seven columns fit no page."""
    value, gap, range_ = cell.partition(" (")
    return (value, f"({range_}") if gap and range_.endswith(")") else (cell, "")


def _breakable(cell: str) -> Markup:
    """Return words with the places marked at which the name of a policy may go on in the next line."""
    return Markup(re.sub(r"([+,])|(?=\()", r"\1<wbr>", str(escape(cell))))  # noqa: S704


_ENVIRONMENT = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
_ENVIRONMENT.filters |= {"apart": _apart, "breakable": _breakable}
_TEMPLATE = _ENVIRONMENT.from_string(_PAGE)


def html(report: Report) -> str:
    """Return a report as one HTML page with its drawings inside; raises ValueError where two charts have one name."""
    # The drawings are ours, and every word in them has been escaped.
    drawn = [(chart, *map(Markup, drawings)) for chart, drawings in all_svgs(report.charts)]
    return _TEMPLATE.render(report=report, drawn=drawn)


def write_html(report: Report, path: Path) -> None:
    """Write the page; the file appears when it is whole. Raises OSError."""
    page = html(report)
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        temporary = Path(file.name)
        try:
            file.write(page)
            file.flush()
            fsync(file.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def write_pngs(report: Report, folder: Path) -> list[Path]:
    """Draw each chart into a folder, which is made if need be, and return the files. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{chart.name}.png" for chart in report.charts]
    for chart, path in zip(report.charts, paths, strict=True):
        png(chart, path)
    return paths
