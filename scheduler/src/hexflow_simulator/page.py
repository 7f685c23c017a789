"""A report as a page that needs nothing but itself, and as pictures for a document.

No address is in it: it opens on a train, and years later.
"""

from os import fsync
from pathlib import Path
from tempfile import NamedTemporaryFile

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from hexflow_simulator.plot import all_svgs, png
from hexflow_simulator.report import Report

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ report.title }}</title>
<style>
:root { color-scheme: light dark; --ink: #1c1e21; --page: #ffffff; --faint: #6b7075; --line: #d5d9dd; --best: #e3f1e9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6e8; --page: #16181b; --faint: #9aa0a6; --line: #3a3f45; --best: #17362a; }
}
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.lead { font-size: 1.05rem; } p.note, figcaption, dt, .faint { color: var(--faint); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { padding: .25rem .7rem; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { vertical-align: bottom; } .number { text-align: right; font-variant-numeric: tabular-nums; }
tr.best td { background: var(--best); font-weight: 600; }
figure { margin: 1rem 0; } figure svg { display: block; width: 100%; max-width: 52rem; height: auto; }
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
<div class="wide">
<table>
<thead><tr>
{% for column in table.columns %}
<th scope="col"{% if column.numbers %} class="number"{% endif %}{% if column.hint %} title="{{ column.hint }}"{% endif %}>{{ column.name }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in table.rows %}
<tr{% if loop.index0 in table.best %} class="best"{% elif loop.index0 in table.faint %} class="faint"{% endif %}>
{% for cell in row %}
<td{% if table.columns[loop.index0].numbers %} class="number"{% endif %}>{{ cell }}</td>
{% endfor %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
{% if table.note %}
<p class="note">{{ table.note }}</p>
{% endif %}
{% endfor %}
{% for chart, drawing in drawn %}
<h2 id="{{ chart.name }}">{{ chart.title }}</h2>
<figure>
{{ drawing }}
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

_TEMPLATE = Environment(
    autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
).from_string(_PAGE)


def html(report: Report) -> str:
    """Return a report as one HTML page with its drawings inside; raises ValueError where two charts have one name."""
    # The drawings are ours, and every word in them has been escaped.
    drawings = [Markup(drawing) for drawing in all_svgs(report.charts)]  # noqa: S704
    return _TEMPLATE.render(report=report, drawn=list(zip(report.charts, drawings, strict=True)))


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
