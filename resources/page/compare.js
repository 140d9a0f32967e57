// Summary, Compare and Ranks: bars, waterfall, curves of all runs, the map of late ranks. Drawn as SVG from numbers.
function splitBars(share) {
  const runs = pageHead.runs.filter(run => run.split.length), node = element('div');
  if (!runs.length) return element('p', {class: 'quiet'}, 'No step was traced in these runs.');
  const width = chartWidth(share), sum = run => run.split.reduce((total, part) => total + part.us, 0), most = Math.max(...runs.map(sum));
  const svg = drawn('svg', {width, height: runs.length * 34 + 8, role: 'img', 'aria-label': 'Bars of the median step by cause'});
  const hatch = drawn('pattern', {id: 'idle', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'});
  hatch.append(drawn('rect', {width: 2, height: 6, fill: fillOf(8)}));
  svg.append(hatch);
  runs.forEach((run, i) => {
    let x = 24;
    const y = i * 34 + 4, number = pageHead.runs.indexOf(run);
    const mark = drawn('text', {x: 4, y: y + 17, class: 'strong'}, run.letter);
    mark.style.fill = runColour(number);
    svg.append(mark);
    for (const part of run.split) {
      const wide = part.us / most * (width - 96), bar = drawn('rect', {x, y, width: wide, height: 24, stroke: ink().edge, 'stroke-width': wide > 3 ? 1 : 0});
      bar.setAttribute('fill', part.meaning === 8 ? 'url(#idle)' : fillOf(part.meaning));
      if (part.waits) bar.setAttribute('fill-opacity', 0.5);
      bar.append(drawn('title', {}, part.name + ' ' + fixed(part.us, 2) + ' µs'));
      svg.append(bar);
      const text = fixed(part.us, 1);
      if (wide > text.length * 7 + 6 && part.meaning !== 8) svg.append(drawn('text', {x: x + 4, y: y + 16, class: 'ink'}, text));
      x += wide;
    }
    svg.append(drawn('text', {x: x + 6, y: y + 16, class: 'strong'}, fixed(sum(run), 1)));
  });
  node.append(svg, splitTable(runs));
  return node;
}

function splitTable(runs) {
  const names = [];
  for (const run of runs) for (const part of run.split) if (!names.some(one => one.name === part.name)) names.push(part);
  const of = (run, name) => (run.split.find(part => part.name === name) || {us: null}).us;
  const rows = names.map(part => ({name: part.name, meaning: part.meaning, ...Object.fromEntries(runs.map((run, i) => ['us' + i, of(run, part.name)]))}));
  const total = {name: 'wall time, their sum', class: 'group'};
  runs.forEach((run, i) => { total['us' + i] = run.split.reduce((sum, part) => sum + part.us, 0); });
  rows.push(total);
  const columns = [{title: 'part of a step', key: 'name', meaning: true}, ...runs.map((run, i) => ({title: run.letter + ', µs', key: 'us' + i, decimals: 2}))];
  return new DataTable(columns, rows).node;
}

// Runs begin their first step at different times.
const sinceFirst = curve => curve && {...curve, t: curve.t.map(time => time - curve.t[0])};

// Losses of all runs since their first loss, as lines in the colours of the runs.
function lossChart(share) {
  const runs = pageHead.runs.map((run, i) => ({i, run, curve: sinceFirst(run.timeline.curves.find(curve => curve.group === 'loss'))})).filter(one => one.curve);
  if (!runs.length) return null;
  const all = runs.map(one => one.curve), log = logHelps(all), width = chartWidth(share), height = 320, left = 52, bottom = 292;
  const scale = curveScale({curves: all, log, group: 'loss'}), end = Math.max(1, ...all.map(curve => curve.t[curve.t.length - 1]));
  if (!scale) return null;
  const x = time => left + time / end * (width - left - 14), y = value => bottom - scale.of(value) * (bottom - 12);
  const svg = drawn('svg', {width, height, role: 'img', 'aria-label': 'Training loss over time'});
  for (const value of lossTicks(scale, log)) {
    svg.append(drawn('line', {x1: left, x2: width - 14, y1: y(value), y2: y(value), class: 'line'}),
      drawn('text', {x: left - 6, y: y(value) + 4, 'text-anchor': 'end', class: 'quiet'}, String(Number(value.toPrecision(2)))));
  }
  const step = niceStep(end / 6);
  for (let t = 0; t <= end; t += step) svg.append(drawn('text', {x: x(t), y: bottom + 16, 'text-anchor': 'middle', class: 'quiet'}, tickText(t, step)));
  svg.append(drawn('line', {x1: left, x2: left, y1: 8, y2: bottom, class: 'axis'}), drawn('line', {x1: left, x2: width - 14, y1: bottom, y2: bottom, class: 'axis'}));
  for (const {i, run, curve} of runs) {
    const points = [];
    curve.t.forEach((time, k) => { if (curve.v[k] != null && (!log || curve.v[k] > 0)) points.push(x(time).toFixed(1) + ',' + y(curve.v[k]).toFixed(1)); });
    const line = drawn('polyline', {points: points.join(' '), fill: 'none', 'stroke-width': 1.7, 'stroke-linejoin': 'round', stroke: runColour(i)});
    line.append(drawn('title', {}, run.letter + ' ' + run.name));
    svg.append(line);
  }
  return svg;
}
function lossTicks(scale, log) {
  if (!log) {
    const step = niceStepOf((scale.most - scale.least) / 5), ticks = [];
    for (let v = Math.ceil(scale.least / step) * step; v <= scale.most + step * 1e-9; v += step) ticks.push(v);
    return ticks;
  }
  const ticks = [];
  for (let power = Math.floor(Math.log10(scale.least)); power <= Math.log10(scale.most); ++power)
    for (const one of [1, 2, 5]) if (one * 10 ** power >= scale.least && one * 10 ** power <= scale.most) ticks.push(one * 10 ** power);
  return ticks.length > 7 ? ticks.filter(value => Math.abs(Math.log10(value) % 1) < 1e-9) : ticks;
}
function niceStepOf(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find(one => one * power >= least) * power;
}

function summaryView() {
  const grid = element('div', {class: 'grid'}), runs = pageHead.runs, share = pageHead.runs.some(run => run.timeline.curves.some(curve => curve.group === 'loss')) && innerWidth > 980 ? 0.5 : 1;
  const chart = lossChart(share);
  if (pageHead.warnings.length)
    grid.append(pane('', 'Read with care', '', body(element('ul', {class: 'plain'}, ...pageHead.warnings.map(text => element('li', {}, text))))));
  if (pageHead.differs.length) grid.append(pane('', choicesTitle(), 'the rest is the same in all runs', body(differenceChips())));
  grid.append(pane(chart ? 'six' : '', 'Where a step’s time goes', 'median of the measured steps, µs; the parts sum to it', body(splitBars(share))));
  if (chart) grid.append(pane('six', 'Training loss', 'over the time since the first one', body(chart)));
  grid.append(pane('', runs.length > 1 ? 'Runs' : 'Run', '', flush(runsTable())));
  runs.forEach((run, i) => {
    if (run.insights.length)
      grid.append(pane(runs.length > 1 ? 'six' : '', runs.length > 1 ? 'Advice for ' + run.letter : 'Advice', run.name, flush(...run.insights.map(one => insightRow(one, i)))));
  });
  runs.forEach((run, i) => grid.append(pane(runs.length > 1 ? 'six' : '', (runs.length > 1 ? run.letter + ': ' : '') + 'machine and choices', run.file, body(aboutRun(run, i)))));
  return grid;
}
function choicesTitle() {
  const count = pageHead.differs.length;
  return count === 1 ? 'One choice differs' : count + ' choices differ';
}
function differenceChips() {
  return element('div', {class: 'choices'}, ...pageHead.differs.map(row => element('div', {class: 'choice'}, element('span', {}, row.key),
    row.values.length === 2 ? row.values[0] + ' → ' : null, element('b', {}, row.values.length === 2 ? row.values[1] : row.values.join(' · ')))));
}

function runsTable() {
  const rows = pageHead.runs.map((run, i) => {
    const time = run.stats.step_time_us || {};
    return {name: run.name, index: i, device: run.device, created: dateText(run.created), status: run.status, steps: run.stats.steps, median: time.median,
      p5: time.p5, p95: time.p95, kernels: run.stats.kernels.count, loss: run.loss, lossName: run.loss == null ? null : run.loss_name, accuracy: run.test_accuracy, busy: run.stats.gpu ? run.stats.gpu.busy : null,
      peak: run.peak_bytes || null};
  });
  const table = new DataTable([{title: 'run', key: 'name'}, {title: 'device', key: 'device'}, {title: 'date', key: 'created'}, {title: 'steps', key: 'steps', decimals: 0},
    {title: 'step, median µs', key: 'median', decimals: 2}, {title: 'P5 µs', key: 'p5', decimals: 2}, {title: 'P95 µs', key: 'p95', decimals: 2},
    {title: 'kernels', key: 'kernels', decimals: 0}, {title: 'GPU busy', key: 'busy', number: true, text: percentText},
    {title: 'loss', key: 'loss', decimals: 4}, {title: 'which loss', key: 'lossName'}, {title: 'test accuracy', key: 'accuracy', number: true, text: percentText},
    {title: 'peak memory', key: 'peak', number: true, text: bytesText}], rows);
  [...table.rowsBody.rows].forEach((tr, i) => tr.cells[0].prepend(badge(i), ' '));
  return table.node;
}
const dateText = text => text ? text.replace('T', ' ').replace('Z', ' UTC') : '';

function insightRow(insight, run) {
  const row = element('div', {class: 'insight'}, swatch(insight.meaning), element('b', {}, sentence(insight.headline)));
  row.append(insight.at ? element('button', {onclick: () => page.showTime(run, insight.at)}, 'Show') : element('span'), element('p', {}, insight.why));
  return row;
}

function aboutRun(run) {
  const machine = run.machine, list = [['device', run.device], ['CPU', machine.cpu ? machine.cpu + (machine.cpu_threads ? ', ' + machine.cpu_threads + ' threads' : '') : ''],
    ['system', machine.system], ['driver', machine.driver], ['CUDA', machine.runtime], ['recorded with', machine.warpsight ? 'Warpsight ' + machine.warpsight : run.origin],
    ['date', dateText(run.created)], ['status', run.status], ['trace', run.traced], ['notes', run.notes], ['tags', run.tags.join(', ')], ['to train it again', run.spec ? element('code', {}, "warpsight train --spec '" + run.spec + "'") : '']];
  const node = element('div', {}, facts(list));
  let group = null;
  const chips = element('div', {class: 'choices'});
  for (const choice of run.choices) {
    if (choice.group !== group) chips.append(element('div', {class: 'choice'}, element('b', {class: 'secondary'}, group = choice.group)));
    chips.append(element('div', {class: 'choice'}, element('span', {}, choice.label), element('b', {}, choice.value)));
  }
  if (run.choices.length) node.append(element('p', {}, '\u00a0'), chips);
  return node;
}

// The causes of a difference, side by side. They sum to it exactly.
function waterfallChart(step, causes, a, b) {
  const seen = cause => Math.abs(cause.delta_us) > 0.0005 * Math.max(step.a_us, step.b_us);  // lower bars would be no higher than a hairline
  const shown = causes.filter(seen).slice(0, 11), rest = causes.filter(cause => !shown.includes(cause));
  if (rest.length) shown.push({name: rest.length + ' smaller', delta_us: rest.reduce((sum, cause) => sum + cause.delta_us, 0), meaning: 'other'});
  const width = chartWidth(1), height = 330, bottom = 280, columns = shown.length + 2, wide = (width - 50) / columns;
  let level = step.a_us, most = Math.max(step.a_us, step.b_us);
  for (const cause of shown) most = Math.max(most, level += cause.delta_us);
  const y = value => bottom - value / most * (bottom - 30), svg = drawn('svg', {width, height, role: 'img', 'aria-label': 'Waterfall of the causes'});
  const tick = niceStepOf(most / 4);
  for (let value = 0; value <= most; value += tick)
    svg.append(drawn('line', {x1: 44, x2: width, y1: y(value), y2: y(value), class: value ? 'line' : 'axis'}), drawn('text', {x: 38, y: y(value) + 4, 'text-anchor': 'end', class: 'quiet'}, fixed(value, tick < 1 ? 1 : 0)));
  const size = Math.min(96, wide * 0.64), place = i => 48 + i * wide + (wide - size) / 2;
  const end = (i, run, value) => {
    const colour = runColour(run);
    svg.append(drawn('rect', {x: place(i), y: y(value), width: size, height: bottom - y(value), fill: colour, 'fill-opacity': .22, stroke: colour, 'stroke-width': 1.5}),
      drawn('text', {x: place(i) + size / 2, y: y(value) - 6, 'text-anchor': 'middle', class: 'strong'}, fixed(value, 1)),
      drawn('text', {x: place(i) + size / 2, y: bottom + 17, 'text-anchor': 'middle', class: 'strong'}, pageHead.runs[run].letter));
  };
  end(0, a, step.a_us);
  level = step.a_us;
  shown.forEach((cause, k) => {
    const i = k + 1, next = level + cause.delta_us, top = y(Math.max(level, next)), tall = Math.max(1, Math.abs(y(level) - y(next)));
    svg.append(drawn('line', {x1: place(i - 1) + size, x2: place(i) + size, y1: y(level), y2: y(level), class: 'link'}));
    const bar = drawn('rect', {x: place(i), y: top, width: size, height: tall, fill: fillOf(Math.max(0, meaningOf(cause.meaning))), stroke: ink().edge});
    bar.append(drawn('title', {}, cause.name + ' ' + signed(cause.delta_us, 2) + ' µs'));
    svg.append(bar, drawn('text', {x: place(i) + size / 2, y: top + tall + 13 > bottom - 2 ? top - 5 : top + tall + 13, 'text-anchor': 'middle'}, signed(cause.delta_us, 1)));
    wordsBelow(svg, cause.name, place(i) + size / 2, bottom + 17, wide);
    level = next;
  });
  svg.append(drawn('line', {x1: place(columns - 2) + size, x2: place(columns - 1) + size, y1: y(level), y2: y(level), class: 'link'}));
  end(columns - 1, b, step.b_us);
  return svg;
}
function wordsBelow(svg, name, x, y, wide) {
  const most = Math.max(4, Math.floor(wide / 6)), words = name.length > most && name.includes(' ') ? [name.slice(0, name.lastIndexOf(' ')), name.slice(name.lastIndexOf(' ') + 1)] : [name];
  words.forEach((word, i) => svg.append(drawn('text', {x, y: y + 13 * i, 'text-anchor': 'middle', class: 'quiet'}, word.length > most ? word.slice(0, most - 1) + '…' : word)));
}

function compareView(pair) {
  const diff = pair.diff, a = pageHead.runs[0], b = pageHead.runs[pair.b], grid = element('div', {class: 'grid'});
  grid.append(pane('', pair.answer, '', body(element('p', {class: 'secondary'}, diff.means), diff.warnings.length
    ? element('ul', {class: 'plain warn'}, ...diff.warnings.map(text => element('li', {}, text))) : null)));
  if (diff.step) {
    const chart = element('div'), show = byOp => chart.replaceChildren(waterfallChart(diff.step, byOp ? diff.causes_by_op : diff.causes, 0, pair.b));
    show(false);
    const tools = diff.causes_by_op.some(cause => cause.op) ? [segments(['by cause', 'by op'], 0, i => show(i === 1))] : [];
    grid.append(pane('', 'Where the ' + fixed(Math.abs(diff.step.delta_us), 1) + ' µs went', 'µs per step; the parts sum to the difference', body(chart), ...tools));
  }
  grid.append(pane('six', 'Measures', 'the baseline is ' + a.letter, flush(measureTable(diff, a, b))));
  const tables = [['kernels', diff.kernels], ['ops', diff.ops], ['modules', diff.modules], ['lines', diff.lines]].filter(([, rows]) => rows && rows.length);
  if (tables.length) {
    const place = element('div', {class: 'body flush'}), show = i => place.replaceChildren(deltaTable(tables[i][0], tables[i][1], a, b));
    show(0);
    grid.append(pane('six', 'Kernels by difference', 'a step', place, tables.length > 1 ? segments(tables.map(([name]) => name), 0, show) : null));
  }
  return grid;
}
const kMarks = {better: '✓ ', worse: '▲ '};
function measureTable(diff, a, b) {
  const rows = [];
  let group = null;
  for (const metric of diff.metrics) {
    if (metric.group !== group) rows.push({name: group = metric.group, class: 'group'});
    rows.push({...metric, title: metric.name, name: metric.name + (metric.unit ? ', ' + metric.unit : ''), class: metric.verdict === 'within noise' ? 'faint' : ''});
  }
  const number = (title, key, text) => ({title, key, number: true, text: (value, row) => value == null ? '' : text(value, row.decimals == null ? 1 : row.decimals)});
  return new DataTable([{title: 'measure', key: 'name'}, number(a.letter, 'a', fixed), number(b.letter, 'b', fixed),
    number(b.letter + ' − ' + a.letter, 'delta', signed), {title: '± noise', key: 'noise', number: true, text: (value, row) => row.class === 'group' || value == null ? '' : fixed(value, row.decimals)},
    {title: 'verdict', key: 'verdict', text: value => (kMarks[value] || '') + (value || '')}], rows).node;
}
function deltaTable(what, deltas, a, b) {
  const rows = deltas.map(delta => ({...delta, size: Math.abs(delta.delta_us)}));
  return new DataTable([{title: what.replace(/s$/, ''), key: 'name'}, {title: a.letter + ', calls', key: 'a_count', decimals: 2}, {title: b.letter + ', calls', key: 'b_count', decimals: 2},
    {title: a.letter + ', µs', key: 'a_us', decimals: 2}, {title: b.letter + ', µs', key: 'b_us', decimals: 2},
    {title: b.letter + ' − ' + a.letter + ', µs', key: 'delta_us', number: true, text: value => signed(value, 2)}], rows).node;
}

function ranksView(run) {
  const report = run.ranks, grid = element('div', {class: 'grid'});
  grid.append(pane('', report.finding || 'No rank is late by more than the usual spread', run.name,
    body(...report.notes.map(text => element('p', {class: 'secondary'}, text)), lateMap(report))));
  const rows = report.ranks.map(rank => ({...rank, name: 'rank ' + rank.rank + (rank.host ? ' · ' + rank.host : '')}));
  grid.append(pane('six', 'Ranks', report.median_step_us > 0 ? 'median step; late and transfers: mean, µs' : 'means of a step, µs', flush(new DataTable([{title: 'rank', key: 'name'}, us('step µs', 'step_us'),
    us('computes µs', 'computes_us', greatest(rows, 'computes_us')), us('waits µs', 'wait_us', greatest(rows, 'wait_us')), us('exposed µs', 'exposed_us'), us('late µs', 'late_us', greatest(rows, 'late_us')),
    us('transfers µs', 'transfer_us'), us('others wait µs', 'caused_us')], rows).node)));
  grid.append(pane('six', 'Collectives', 'means of a step over all ranks, µs', flush(new DataTable([{title: 'collective', key: 'name'}, {title: 'size', key: 'bytes', number: true, text: bytesText},
    {title: 'count', key: 'count', decimals: 2}, us('waits µs', 'wait_us', greatest(report.collectives, 'wait_us')), us('transfers µs', 'transfer_us'), us('exposed µs', 'exposed_us'),
    {title: 'bus GB/s', key: 'bus_gb_s', decimals: 1}, {title: 'peak GB/s', key: 'peak_gb_s', number: true, text: value => value > 0 ? fixed(value, 1) : kUnknown}], report.collectives, {sorted: 'wait_us'}).node)));
  return grid;
}
// A cell for each rank and step; the later a rank comes, the stronger its colour.
function lateMap(report) {
  const canvas = element('canvas', {width: Math.max(1, report.steps.length), height: report.ranks.length, role: 'img', 'aria-label': 'How late each rank comes, by step'});
  if (!report.steps.length) return element('p', {class: 'quiet'}, 'The ranks have no step in common.');
  const most = Math.max(1e-9, ...report.ranks.map(rank => extremes(rank.late_us_by_step)[1])), c = canvas.getContext('2d');
  report.ranks.forEach((rank, r) => rank.late_us_by_step.forEach((late, step) => {
    if (late == null) return;
    c.fillStyle = '#E89553';
    c.globalAlpha = 0.06 + 0.94 * Math.max(0, late) / most;
    c.fillRect(step, r, 1, 1);
  }));
  canvas.style.width = '100%';
  canvas.style.height = Math.min(400, Math.max(18 * report.ranks.length, 40)) + 'px';
  canvas.style.imageRendering = 'pixelated';
  canvas.style.marginTop = '8px';
  return element('div', {}, canvas, element('p', {class: 'quiet small'}, 'Rows: ranks 0 to ' + (report.ranks.length - 1) + '. Columns: ' + report.steps.length + ' steps. Strongest: ' + fixed(most, 1) + ' µs late.'));
}
