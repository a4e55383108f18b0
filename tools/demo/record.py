"""Records `fairwarning demo` as an animated SVG: python -m tools.demo.record > docs/demo.svg

The picture has no script. Each scene appears at its time; who prefers no motion sees all at once.
"""

import sys
from html import escape

from fairwarning.cli.demo import PAUSE_S, Part, lines_of, play

_COLOURS = {
    "": "#e6e6e6",
    "dim": "#8a8f98",
    "document": "#56b6c2",
    "Scheduled": "#e5c07b",
    "Approved": "#98c379",
    "Started": "#c678dd",
    "Completed": "#98c379",
}
_COLUMN, _LINE, _EDGE = 8.0, 20, 24
COLUMNS = 100
_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"
  height="{height}" role="img" aria-label="fairwarning demo: the life of one event in the terminal">
<style>
  text {{ font: 13px ui-monospace, Menlo, Consolas, monospace; white-space: pre }}
  g {{ opacity: 0; animation: show 0.2s linear forwards }}
  @keyframes show {{ to {{ opacity: 1 }} }}
  @media (prefers-reduced-motion) {{ g {{ animation: none; opacity: 1 }} }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#1e2127"/>
"""


def record() -> str:
    """Return the SVG of a whole run of the demo."""
    scenes: list[list[list[Part]]] = [[[Part("$ ", "dim"), Part("fairwarning demo")]]]
    starts = [0.0]
    at_s = PAUSE_S / 2

    def tell(time: str, text: str, document: bytes | None = None, *, is_scene: bool = True) -> None:
        nonlocal at_s
        scenes.append(lines_of(time, text, document))
        starts.append(at_s)
        at_s += PAUSE_S if is_scene else 0.0

    play(tell)
    height = 2 * _EDGE + _LINE * sum(map(len, scenes))
    parts = [_HEAD.format(width=int(COLUMNS * _COLUMN + 2 * _EDGE), height=height)]
    y = _EDGE + _LINE // 2
    for start, lines in zip(starts, scenes, strict=True):
        parts.append(f'<g style="animation-delay: {start:g}s">\n')
        for line in lines:
            spans = "".join(_span(each) for each in line)
            parts.append(f'<text x="{_EDGE}" y="{y}">{spans}</text>\n')
            y += _LINE
        parts.append("</g>\n")
    return "".join([*parts, "</svg>\n"])


def _span(part: Part) -> str:
    return f'<tspan fill="{_COLOURS[part.kind]}">{escape(part.text, quote=False)}</tspan>'


if __name__ == "__main__":
    sys.stdout.write(record())
