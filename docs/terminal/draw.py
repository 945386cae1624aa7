"""Draws a recording of asciinema's, version 2, as an SVG that moves by CSS alone: `draw.py CAST SVG`."""

import json
import sys
from pathlib import Path

from ptyreel.layout import Layout
from ptyreel.screen import TerminalScreen
from ptyreel.svg import render_svg
from ptyreel.tape import TapeSettings

cast, svg = map(Path, sys.argv[1:])
header, *events = [json.loads(line) for line in cast.read_text().splitlines()]
settings = TapeSettings(
    font_size=13, width=960, height=800, padding=12, title="cargo workshop", loop_delay_ms=6000
)
layout = Layout.from_settings(settings)
screen = TerminalScreen(cols=header["width"], rows=header["height"])
assert screen.cols <= layout.cols and screen.rows <= layout.rows, (layout.cols, layout.rows)

# A progress line that is drawn again is no less a wait: one in four seconds is kept, and shown for one.
REDRAWN = "\r\x1b[2K"

shown, before = 0.0, 0.0
for at, kind, text in events:
    is_redrawn = text.startswith(REDRAWN)
    if is_redrawn and not text.endswith(("\n", REDRAWN)) and at - before < 4:
        continue
    shown += min(at - before, 1 if is_redrawn else header["idle_time_limit"])
    before = at
    if kind == "o":
        screen.feed(text, time_ms=round(1000 * shown))
drawn = render_svg(screen.snapshot(duration_ms=round(1000 * shown)), settings=settings)
# The window alone, without ptyreel's light ground, so that it stands on a dark page too.
window = f"{layout.window_x} {layout.window_y} {layout.window_width} {layout.window_height}"
drawn = drawn.replace(f'viewBox="0 0 {settings.width} {settings.height}"', f'viewBox="{window}"')
drawn = drawn.replace('fill="url(#backdrop)"', 'fill="none"').replace('filter="url(#lift)"', "")
svg.write_text(drawn)
