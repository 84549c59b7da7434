"""What the contest's page needs beyond the style sheet of the report."""

STYLE = """
main, footer { max-width: 1180px; }
main .breakout { width: auto; margin-left: 0; }
figure > svg { max-width: 900px; }
.answer { max-width: 46rem; }
.note { margin-top: 14px; }
.standings td, .standings th, .heat td, .heat th { padding: 3px 9px; vertical-align: middle; }
.standings .plot { width: 34%; min-width: 130px; padding: 0 12px; }
.standings .band-plot { width: 14%; min-width: 80px; padding: 0 22px 0 16px; }
.standings .plot svg, .standings .band-plot svg { display: block; width: 100%; height: 24px; overflow: visible; }
.ticks { position: relative; height: 1.5em; color: var(--soft); font-weight: 400; }
.ticks span { position: absolute; transform: translateX(-50%); white-space: nowrap; font-size: .75rem; }
.plot path, .plot rect, .plot line, .band-plot path { vector-effect: non-scaling-stroke; }
.raw { --c: var(--c1); } .guarded { --c: var(--c0); }
.box { fill: var(--page); stroke: var(--c); stroke-width: 1.5; }
.guarded .box { fill: var(--c); fill-opacity: .28; }
.reach { fill: none; stroke: var(--c); stroke-width: 1.5; }
.middle { fill: none; stroke: var(--c); stroke-width: 3.5; }
.mean { fill: none; stroke: var(--ink); stroke-width: 5; stroke-linecap: round; }
.none { color: var(--soft); }
.bad { color: var(--limit); font-weight: 600; }
tr.best > * { background: var(--tint); }
.tag { color: var(--soft); font-weight: 400; }
.standings tbody th, .heat tbody th { text-align: left; font-weight: 500; white-space: nowrap; }
.heat td { text-align: right; background: color-mix(in srgb, var(--c1) calc(var(--v) * 55%), var(--page)); }
.heat td.none { background: none; }
.heat small { color: var(--soft); display: block; font-size: .72rem; line-height: 1.1; }
.heat td small { color: inherit; }
.heat td small b { color: var(--limit); font-weight: 600; }
.panel { margin-top: 36px; }
.wins { color: var(--accent); font-weight: 600; }
details + details { margin-top: 14px; }
.line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
.line.of-raw { stroke-dasharray: 5 4; }
.crashes { color: var(--limit); font-size: .875rem; }
@media (max-width: 699px) {
  .far { display: none; }
  .standings th, .standings td { padding: 2px 5px; }
  .standings .plot { width: 38%; min-width: 96px; padding: 0 8px; }
}
"""
