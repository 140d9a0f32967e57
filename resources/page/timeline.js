// The timeline of one run on a canvas: overview, ruler, curves, lanes. Its cost follows the pixels and not the spans.
const kGutter = 150, kOverviewHeight = 30, kRulerHeight = 24, kHeadHeight = 20, kLeastSpan = 50;
const kHeights = {steps: 19, phases: 19, stream: 42, copies: 20, graphs: 20, inside: 17, api: 26, thread: 24, other: 20, overhead: 20};
const kLetters = '11px Inter, "DejaVu Sans", sans-serif', kSmallLetters = '10.5px Inter, "DejaVu Sans", sans-serif';
const kFree = 5, kKernel = 0;  // kinds of spans

class Timeline {
  constructor(run, index, stage) {
    this.run = run, this.index = index, this.stage = stage, this.data = run.timeline;
    [this.from, this.to] = this.data.first, this.scroll = 0;
    this.pointer = null, this.selected = null, this.range = null, this.hits = null, this.marks = [];
    this.folded = new Set();
    this.lanes = this.data.lanes.map((lane, number) => ({...lane, number, spans: null, loading: null, bars: overviewBars(lane), count: lane.spans}));
    this.curves = curvePanes(this.data.curves);
    this.layOut();
  }

  // Lanes in groups; a row of deeper nesting has no title of its own.
  layOut() {
    this.rows = [];
    let y = 0, group = null, before = null;
    const insides = this.lanes.filter(lane => lane.kind === 'inside').length;
    const busiest = Math.max(0, ...this.lanes.filter(lane => lane.kind === 'stream').map(lane => lane.all));
    for (const lane of this.lanes) {
      const title = this.groupOf(lane, insides);
      if (title !== group) {
        group = title;
        if (this.folded.size === 0 && insides > 12 && lane.kind === 'inside' && !this.seen) this.folded.add(title), this.seen = true;
        this.rows.push({head: title, y, height: kHeadHeight});
        y += kHeadHeight;
        before = null;
      }
      if (this.folded.has(group)) continue;
      const nested = before && before.name === lane.name && before.kind === lane.kind;
      const quiet = lane.kind === 'stream' && lane.all * 20 < busiest;  // a stream with little on it stays low
      const height = lane.kind === 'stream' && (nested || quiet) ? 22 : kHeights[lane.kind] || 20;
      this.rows.push({lane, y, height, title: nested ? '' : laneTitle(lane)});
      y += height;
      before = lane;
    }
    this.lanesHeight = y + 8;
    this.curvesHeight = this.curves.reduce((sum, curve) => sum + curve.height, 0);
  }
  groupOf(lane, insides) {
    if (lane.marks) return 'Steps' + (lane.rank < 0 ? '' : ' of rank ' + lane.rank);
    return lane.group + (lane.kind === 'inside' && insides > 12 ? ' · multiprocessors' : '') || 'Lanes';
  }

  async load(lane) {
    if (!lane.loading) lane.loading = loadLane(lane).then(spans => { lane.spans = spans; this.changed(); });
    return lane.loading;
  }
  loadAll() { return Promise.all(this.lanes.map(lane => this.load(lane))); }
  changed() { if (this.stage.timeline === this) this.stage.requestDraw(); }

  width() { return this.stage.width - kGutter; }
  top() { return kOverviewHeight + kRulerHeight + this.curvesHeight; }
  x(time) { return kGutter + (time - this.from) / (this.to - this.from) * this.width(); }
  time(x) { return this.from + (x - kGutter) / this.width() * (this.to - this.from); }

  show(from, to) {
    const whole = this.data.end, length = Math.max(kLeastSpan, Math.min(to - from, whole * 1.1));
    const start = Math.max(-0.05 * whole, Math.min(from, 1.05 * whole - length));
    this.from = start, this.to = start + length;
    this.changed();
    this.stage.moved();
  }
  zoom(factor, x) {
    const at = this.time(Math.max(kGutter, x == null ? kGutter + this.width() / 2 : x));
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  pan(share) { this.show(this.from + share * (this.to - this.from), this.to + share * (this.to - this.from)); }
  scrollBy(pixels) {
    const most = Math.max(0, this.lanesHeight - (this.stage.height - this.top()));
    this.scroll = Math.max(0, Math.min(most, this.scroll + pixels));
    this.changed();
  }

  // --- drawing
  draw(c) {
    const colours = ink(), {width, height} = this.stage;
    c.fillStyle = colours.base;
    c.fillRect(0, 0, width, height);
    this.drawLanes(c, colours);
    c.fillStyle = colours.base;
    c.fillRect(0, 0, width, this.top());
    this.drawRuler(c, colours);
    this.drawCurves(c, colours);
    this.drawOverview(c, colours);
    this.drawRange(c, colours);
    this.drawCursor(c, colours);
  }

  drawLanes(c, colours) {
    const top = this.top(), {width, height} = this.stage;
    c.save();
    c.beginPath();
    c.rect(0, top, width, height - top);
    c.clip();
    for (const row of this.rows) {
      const y = top + row.y - this.scroll;
      if (y + row.height < top || y > height) continue;
      if (row.head != null) this.drawHead(c, colours, row, y);
      else this.drawRow(c, colours, row, y);
    }
    this.drawPartners(c, colours);
    c.restore();
  }
  drawHead(c, colours, row, y) {
    c.fillStyle = colours.header;
    c.fillRect(0, y, this.stage.width, row.height);
    c.fillStyle = colours.border;
    c.fillRect(0, y, this.stage.width, 1);
    c.font = '600 ' + kLetters;
    c.fillStyle = colours.text;
    c.fillText((this.folded.has(row.head) ? '▸ ' : '▾ ') + row.head, 8, y + 14);
  }
  drawRow(c, colours, row, y) {
    const lane = row.lane;
    c.fillStyle = colours.grid;
    c.fillRect(kGutter, y + row.height - 1, this.width(), 1);
    c.font = kLetters;
    c.fillStyle = colours.secondary;
    c.fillText(fitted(c, row.title, kGutter - 26), 18, y + row.height / 2 + 4);
    c.save();
    c.beginPath();
    c.rect(kGutter, y, this.width(), row.height);
    c.clip();
    if (lane.spans) this.drawSpans(c, colours, lane, y, row.height);
    else this.load(lane);
    this.drawBars(c, lane, y, row.height);
    c.restore();
  }
  // What is not loaded yet, or only in the overview.
  drawBars(c, lane, y, height) {
    const until = lane.spans ? (lane.spans.count ? lane.from : Infinity) : Infinity;
    if (lane.spans && !(until > 0 && lane.all > lane.count)) return;
    const whole = this.data.end;
    for (const [from, to, meaning, busy] of lane.bars) {
      if (from * whole >= until) break;
      const x0 = Math.max(kGutter, this.x(from * whole)), x1 = this.x(Math.min(until, to * whole));
      if (x1 < kGutter || x0 > this.stage.width) continue;
      const tall = Math.max(2, (height - 6) * busy);
      c.fillStyle = fillOf(meaning);
      c.fillRect(x0, y + height - 3 - tall, Math.max(1, x1 - x0), tall);
    }
  }

  drawSpans(c, colours, lane, y, height) {
    const s = lane.spans, scale = this.width() / (this.to - this.from), inset = height > 19 ? 3 : 2;
    let i = firstNotLess(s.reach, this.from + 1e-9);
    let fill = null;
    const colour = (meaning, kind) => {
      const next = lane.kind === 'steps' || lane.kind === 'phases' ? colours.mark : fillOf(meaning);
      if (fill !== next) c.fillStyle = fill = next;
      c.globalAlpha = kind === kFree ? 0.62 : 1;
    };
    const end = firstNotLess(s.start, this.to);
    c.font = kSmallLetters;
    while (i < end) {
      const left = kGutter + (s.start[i] - this.from) * scale, wide = s.duration[i] * scale;
      if (wide >= 1) {
        colour(s.meaning[i], s.kind[i]);
        this.drawBlock(c, colours, lane, i, left, wide, y + inset, height - 2 * inset);
        fill = null;
        ++i;
        continue;
      }
      const column = Math.floor(left), until = this.from + (column + 1 - kGutter) / scale;
      let j = gallop(s.start, i + 1, until);
      if (j > i + 1 && s.duration[j - 1] * scale >= 1) --j;
      const busy = Math.min(1, (s.before[j] - s.before[i]) * scale), tall = Math.max(2, (height - 2 * inset) * busy);
      colour(this.mainMeaning(s, i, j), -1);
      c.fillRect(column, y + height - inset - tall, 1, tall);
      i = j;
    }
    c.globalAlpha = 1;
  }
  drawBlock(c, colours, lane, i, left, wide, y, height) {
    const x0 = Math.max(kGutter - 2, left), x1 = Math.min(this.stage.width + 2, left + wide), width = Math.max(1, x1 - x0 - (wide > 3 ? 0.5 : 0));
    c.fillRect(x0, y, width, height);
    c.globalAlpha = 1;
    const marks = lane.kind === 'steps' || lane.kind === 'phases';
    if (wide > 4) {
      c.strokeStyle = marks ? colours.strong : colours.edge;
      c.lineWidth = 1;
      c.strokeRect(x0 + 0.5, y + 0.5, width - 1, height - 1);
    }
    const space = width - 8;
    if (space > 12) {
      const text = lane.kind === 'steps' && lane.spans.step[i] ? this.stepLabel(c, lane.spans.step[i] - 1, space) : this.label(c, lane.spans, i, space);
      c.fillStyle = marks ? colours.text : colours.fill;
      if (text) c.fillText(text, x0 + 4, y + height / 2 + 3.5);
    }
    if (this.hits && (this.hits.names.has(lane.spans.name[i]) || this.hits.ops.has(lane.spans.op[i]))) {
      c.strokeStyle = colours.focus;
      c.lineWidth = 2;
      c.strokeRect(x0 + 1, y + 1, width - 2, height - 2);
    }
    const chosen = this.selected;
    if (chosen && chosen.lane === lane && chosen.i === i) {
      c.strokeStyle = colours.text;
      c.lineWidth = 2;
      c.strokeRect(x0 + 1, y + 1, width - 2, height - 2);
    }
  }
  stepLabel(c, step, space) { return ['step ' + step, String(step)].find(text => c.measureText(text).width <= space) || ''; }
  // The first of op, whole name and short name that fits.
  label(c, s, i, space) {
    const op = this.data.ops[s.op[i]], name = this.data.names[s.name[i]] || '', brief = this.data.short[s.name[i]];
    for (const text of [op && s.kind[i] === kKernel ? op.name : null, name, brief])
      if (text && text.length * 4 < space && c.measureText(text).width <= space) return text;
    const last = (op && s.kind[i] === kKernel ? op.name : null) || brief || name;
    return space > 54 ? fitted(c, last, space, 6) : '';
  }
  mainMeaning(s, i, j) {
    if (j === i + 1) return s.meaning[i];
    const sums = new Float64Array(meaningCount()), first = Math.ceil(i / kGroup), last = Math.floor(j / kGroup);
    if (last > first) {
      for (let k = i; k < first * kGroup; ++k) sums[s.meaning[k]] += s.duration[k];
      for (let g = first; g < last; ++g)
        for (let m = 0; m < sums.length; ++m) sums[m] += s.byMeaning[g * sums.length + m];
      for (let k = last * kGroup; k < j; ++k) sums[s.meaning[k]] += s.duration[k];
    } else {
      for (let k = i; k < j; ++k) sums[s.meaning[k]] += s.duration[k];
    }
    let best = 0;
    for (let m = 1; m < sums.length; ++m) if (sums[m] > sums[best] || (sums[m] === sums[best] && m === 5)) best = m;
    return best;
  }
  // From a call to what it launched, and back.
  drawPartners(c, colours) {
    const chosen = this.selected;
    if (!chosen || !chosen.partner) return;
    const at = place => {
      const row = this.rows.find(one => one.lane === place.lane);
      if (!row) return null;
      return {x: this.x(place.lane.spans.start[place.i]), y: this.top() + row.y - this.scroll + row.height / 2};
    };
    const a = at(chosen), b = at(chosen.partner);
    if (!a || !b) return;
    c.strokeStyle = colours.text;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(a.x, a.y);
    c.lineTo(a.x, (a.y + b.y) / 2);
    c.lineTo(b.x, (a.y + b.y) / 2);
    c.lineTo(b.x, b.y);
    c.stroke();
    c.fillStyle = colours.text;
    c.beginPath();
    c.arc(b.x, b.y, 3, 0, 7);
    c.fill();
  }

  drawRuler(c, colours) {
    const y = kOverviewHeight, {width} = this.stage;
    c.fillStyle = colours.header;
    c.fillRect(0, y, width, kRulerHeight);
    c.fillStyle = colours.border;
    c.fillRect(0, y + kRulerHeight - 1, width, 1);
    const step = niceStep((this.to - this.from) / Math.max(2, this.width() / 110));
    c.font = kLetters;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = this.x(t);
      c.fillStyle = colours.grid;
      c.fillRect(x, y + kRulerHeight, 1, this.curvesHeight);
      c.fillStyle = colours.strong;
      c.fillRect(x, y + kRulerHeight - 6, 1, 6);
      c.fillStyle = colours.secondary;
      c.fillText(tickText(t, step), x + 4, y + 15);
    }
    c.fillStyle = colours.header;
    c.fillRect(0, y, kGutter, kRulerHeight);
    c.fillStyle = colours.secondary;
    c.fillText(timeText(this.to - this.from) + ' shown', 18, y + 15);
  }
  drawOverview(c, colours) {
    const {width} = this.stage, whole = this.data.end;
    c.fillStyle = colours.base;
    c.fillRect(0, 0, width, kOverviewHeight);
    const lane = this.lanes.find(one => one.kind === 'stream') || this.lanes.find(one => one.kind === 'thread') || this.lanes[0];
    const scale = this.width() / whole;
    const bar = (from, to, meaning, busy) => {
      const tall = Math.max(1, 20 * busy);
      c.fillStyle = fillOf(meaning);
      c.fillRect(kGutter + from * scale, 5 + 20 - tall, Math.max(1, (to - from) * scale), tall);
    };
    c.globalAlpha = 0.75;
    if (lane && lane.bars.length) lane.bars.forEach(([from, to, meaning, busy]) => bar(from * whole, to * whole, meaning, busy));
    else if (lane && lane.spans)
      for (let i = 0; i < lane.spans.count; ++i) bar(lane.spans.start[i], lane.spans.start[i] + lane.spans.duration[i], lane.spans.meaning[i], 1);
    c.globalAlpha = 1;
    const x0 = kGutter + Math.max(0, this.from) * scale, x1 = Math.max(x0 + 7, kGutter + Math.min(whole, this.to) * scale);
    c.fillStyle = colours.base;
    c.globalAlpha = 0.6;
    c.fillRect(kGutter, 2, x0 - kGutter, kOverviewHeight - 4);
    c.fillRect(x1, 2, width - x1, kOverviewHeight - 4);
    c.globalAlpha = 1;
    c.strokeStyle = colours.focus;
    c.lineWidth = 1.5;
    c.strokeRect(x0, 2.5, x1 - x0, kOverviewHeight - 5);
    c.fillStyle = colours.base;
    c.fillRect(0, 0, kGutter, kOverviewHeight);
    c.font = kLetters;
    c.fillStyle = colours.secondary;
    c.fillText('whole run, ' + timeText(whole), 18, 19);
  }
  drawCurves(c, colours) {
    let y = kOverviewHeight + kRulerHeight;
    for (const curve of this.curves) {
      drawCurvePane(c, this, curve, y);
      y += curve.height;
    }
    c.fillStyle = colours.strong;
    if (this.curvesHeight) c.fillRect(0, y - 1, this.stage.width, 1);
    c.fillStyle = colours.strong;
    c.fillRect(kGutter - 1, kOverviewHeight + kRulerHeight, 1, this.stage.height);
  }
  drawRange(c, colours) {
    if (!this.range) return;
    const x0 = this.x(this.range[0]), x1 = this.x(this.range[1]), y = kOverviewHeight;
    c.fillStyle = colours.focus;
    c.globalAlpha = 0.12;
    c.fillRect(x0, y, x1 - x0, this.stage.height);
    c.globalAlpha = 1;
    c.fillRect(x0, y, 1, this.stage.height);
    c.fillRect(x1, y, 1, this.stage.height);
    c.font = '600 ' + kLetters;
    const text = timeText(this.range[1] - this.range[0]);
    const wide = c.measureText(text).width + 12, left = (x0 + x1 - wide) / 2;
    if (x1 - x0 < wide) return;
    c.fillRect(left, y + 3, wide, 17);
    c.fillStyle = colours.base;
    c.fillText(text, left + 6, y + kRulerHeight - 9);
  }
  drawCursor(c, colours) {
    this.marks.forEach((time, i) => {
      const x = this.x(time);
      if (x < kGutter) return;
      c.fillStyle = colours.focus;
      c.fillRect(x, kOverviewHeight, 1.5, this.stage.height);
      c.fillRect(x, kOverviewHeight, 9, 9);
      c.font = kLetters;
      if (i > 0) c.fillText(signedTime(time - this.marks[i - 1]), x + 12, kOverviewHeight + 9);
    });
    if (!this.pointer || this.pointer.x < kGutter) return;
    const x = Math.round(this.pointer.x) + 0.5, text = timeText(this.time(this.pointer.x));
    c.strokeStyle = colours.text;
    c.lineWidth = 1;
    c.setLineDash([3, 2]);
    c.beginPath();
    c.moveTo(x, kOverviewHeight + kRulerHeight);
    c.lineTo(x, this.stage.height);
    c.stroke();
    c.setLineDash([]);
    c.font = '600 ' + kSmallLetters;
    const wide = c.measureText(text).width + 10, left = Math.min(this.stage.width - wide, Math.max(kGutter, x - wide / 2));
    c.fillStyle = colours.text;
    c.fillRect(left, kOverviewHeight + 3, wide, 17);
    c.fillStyle = colours.base;
    c.fillText(text, left + 5, kOverviewHeight + 15);
  }

  // --- finding
  rowAt(y) {
    const at = y - this.top() + this.scroll;
    return y < this.top() ? null : this.rows.find(row => at >= row.y && at < row.y + row.height) || null;
  }
  // The span under a point, or the nearest within three pixels.
  spanAt(x, y) {
    const row = this.rowAt(y);
    if (!row || !row.lane || !row.lane.spans || x < kGutter) return null;
    const s = row.lane.spans, time = this.time(x), reach = 3 * (this.to - this.from) / this.width();
    let best = null, far = reach;
    for (let i = firstNotLess(s.reach, time - reach); i < s.count && s.start[i] <= time + reach; ++i) {
      const away = Math.max(0, s.start[i] - time, time - s.start[i] - s.duration[i]);
      if (away < far || (away === 0 && far > 0)) best = i, far = away;
      if (away === 0 && s.duration[i] > 0) break;
    }
    return best == null ? null : {lane: row.lane, i: best};
  }
  select(place, centre) {
    this.selected = place;
    if (place) {
      place.partner = this.partnerOf(place);
      const s = place.lane.spans, start = s.start[place.i], end = start + s.duration[place.i];
      if (centre && (end < this.from || start > this.to || end - start > this.to - this.from)) {
        const length = Math.max(end - start, Math.min(this.to - this.from, this.data.end / 4));
        this.show(start - length * 0.4, start + length * 0.6);
      }
      if (centre) this.scrollTo(place.lane);
    }
    this.stage.showDetails();
    this.changed();
  }
  scrollTo(lane) {
    const row = this.rows.find(one => one.lane === lane);
    if (!row) return;
    const space = this.stage.height - this.top();
    if (row.y < this.scroll) this.scroll = row.y;
    if (row.y + row.height > this.scroll + space) this.scroll = row.y + row.height - space;
  }
  partnerOf(place) {
    const number = place.lane.spans.correlation[place.i];
    if (!number) return null;
    const host = place.lane.kind === 'api';
    for (const lane of this.lanes) {
      if (!lane.spans || (lane.kind === 'api') === host || lane.rank !== place.lane.rank) continue;
      const i = lane.spans.correlation.indexOf(number);
      if (i >= 0) return {lane, i};
    }
    return null;
  }
  // The next or the previous span of the same name in the lane.
  sameName(forward) {
    const chosen = this.selected;
    if (!chosen) return;
    const s = chosen.lane.spans, name = s.name[chosen.i], step = forward ? 1 : -1;
    for (let i = chosen.i + step; i >= 0 && i < s.count; i += step)
      if (s.name[i] === name) return this.select({lane: chosen.lane, i}, true);
    this.stage.say(forward ? 'This is the last one of its name here.' : 'This is the first one of its name here.');
  }
  async find(text) {
    const words = text.toLowerCase();
    if (!words) return this.hits = null, this.changed(), [];
    await this.loadAll();
    const names = new Set(), ops = new Set();
    this.data.names.forEach((name, i) => { if (name.toLowerCase().includes(words)) names.add(i); });
    this.data.ops.forEach((op, i) => { if (op && (op.name + ' ' + op.layer + ' ' + op.line).toLowerCase().includes(words)) ops.add(i); });
    this.hits = {names, ops};
    const sums = new Map();
    for (const lane of this.lanes)
      for (let i = 0, s = lane.spans; i < s.count; ++i) {
        if (!names.has(s.name[i]) && !ops.has(s.op[i])) continue;
        const known = sums.get(s.name[i]);
        if (known) ++known.count, known.total += s.duration[i];
        else sums.set(s.name[i], {name: this.data.names[s.name[i]], meaning: s.meaning[i], count: 1, total: s.duration[i], place: {lane, i}});
      }
    this.changed();
    return [...sums.values()].sort((a, b) => b.total - a.total);
  }
  nextHit() {
    if (!this.hits) return;
    const after = this.selected ? this.selected.lane.spans.start[this.selected.i] : this.from;
    let best = null, time = Infinity;
    for (const lane of this.lanes) {
      const s = lane.spans;
      for (let i = s ? firstNotLess(s.start, after + 1e-9) : 0; s && i < s.count && s.start[i] < time; ++i)
        if (this.hits.names.has(s.name[i]) || this.hits.ops.has(s.op[i])) {
          best = {lane, i}, time = s.start[i];
          break;
        }
    }
    if (best) this.select(best, true);
    else this.stage.say('No match after this one.');
  }
  // Time by name in a range, clipped to it.
  sums(from, to) {
    const sums = new Map();
    for (const lane of this.lanes) {
      const s = lane.spans;
      if (!s || lane.kind === 'steps' || lane.kind === 'phases') continue;
      for (let i = firstNotLess(s.reach, from + 1e-9); i < s.count && s.start[i] < to; ++i) {
        const inside = Math.min(to, s.start[i] + s.duration[i]) - Math.max(from, s.start[i]);
        if (inside <= 0) continue;
        const key = s.name[i] + ' ' + lane.kind, known = sums.get(key);
        if (known) ++known.count, known.total += inside;
        else sums.set(key, {name: this.data.short[s.name[i]] || this.data.names[s.name[i]], meaning: s.meaning[i], count: 1, total: inside});
      }
    }
    return [...sums.values()].sort((a, b) => b.total - a.total);
  }
}

function laneTitle(lane) {
  if (lane.kind === 'steps') return lane.gpu_steps ? 'step' : lane.rank < 0 ? 'step (host)' : 'step';
  return lane.kind === 'phases' && lane.title === lane.name ? 'phase' : lane.title;
}

function fitted(c, text, space, least = 1) {
  if (c.measureText(text).width <= space) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (c.measureText(text.slice(0, middle) + '…').width <= space) low = middle;
    else high = middle - 1;
  }
  return low >= least ? text.slice(0, low) + '…' : '';
}

// The first index from `i` on whose value is not less than `value`; near `i` it needs few steps.
function gallop(values, i, value) {
  let step = 1, low = i;
  while (low < values.length && values[low] < value) i = low + 1, low += step, step *= 2;
  let high = Math.min(low, values.length);
  low = i;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function niceStep(least) {
  const power = Math.pow(10, Math.floor(Math.log10(Math.max(least, 1))));
  return [1, 2, 5, 10].find(one => one * power >= least) * power;
}
function tickText(ns, step) {
  const [unit, size] = step >= 1e9 ? ['s', 1e9] : step >= 1e6 ? ['ms', 1e6] : step >= 1e3 ? ['µs', 1e3] : ['ns', 1];
  return fixed(ns / size, 0) + kThin + unit;
}
const signedTime = ns => (ns >= 0 ? '+' : '') + timeText(ns);
