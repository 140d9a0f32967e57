// The page: what stands on top, tabs, the stage of the timeline with pointer and keyboard, and its place in the address.
class Stage {
  constructor() {
    this.canvas = element('canvas', {tabindex: 0, 'aria-label': 'Timeline. W and S zoom, A and D pan, F fits.'});
    this.search = element('input', {type: 'search', placeholder: 'Find a kernel, call, op or line', 'aria-label': 'Find', oninput: () => this.lookFor(), onkeydown: event => this.searchKey(event)});
    this.found = element('div', {class: 'found', hidden: true});
    this.card = element('div', {class: 'card', hidden: true});
    this.legend = element('div', {class: 'legend'});
    this.head = element('div', {class: 'head'}, this.search, element('button', {onclick: () => this.fit()}, 'Fit'), this.legend, element('span', {class: 'space'}));
    this.node = element('div', {class: 'stage'}, this.head, this.found, this.canvas, this.card);
    this.details = element('aside', {class: 'details', 'aria-label': 'Details'});
    this.width = 0, this.height = 0, this.timeline = null, this.waiting = false, this.drag = null;
    this.listen();
  }
  listen() {
    const canvas = this.canvas;
    new ResizeObserver(() => this.resize()).observe(canvas);
    canvas.addEventListener('wheel', event => this.wheel(event), {passive: false});
    canvas.addEventListener('pointerdown', event => this.press(event));
    canvas.addEventListener('pointermove', event => this.move(event));
    canvas.addEventListener('pointerup', event => this.release(event));
    canvas.addEventListener('pointerleave', () => this.leave());
    canvas.addEventListener('dblclick', () => this.zoomToSelected());
  }
  resize() {
    const ratio = devicePixelRatio || 1, box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    this.width = box.width, this.height = box.height;
    this.canvas.width = Math.round(box.width * ratio), this.canvas.height = Math.round(box.height * ratio);
    this.draw();
  }
  show(timeline) {
    this.timeline = timeline;
    this.found.hidden = true;
    this.fillLegend();
    this.showDetails();
    this.requestDraw();
    setTimeout(() => timeline.loadAll().then(() => timeline === this.timeline && this.fillLegend()), 60);  // after the first picture: what is visible comes first
  }
  fillLegend() {
    const used = new Set();
    for (const lane of this.timeline.lanes) {
      if (lane.kind === 'steps' || lane.kind === 'phases') continue;
      lane.bars.forEach(bar => used.add(bar[2]));
      if (lane.spans) lane.spans.meaning.forEach(meaning => used.add(meaning));
    }
    this.legend.replaceChildren(...[...used].sort((a, b) => a - b).map(m => element('span', {}, swatch(m), pageHead.meanings[m])));
  }
  requestDraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }
  draw() {
    if (!this.timeline || !this.width) return;
    const c = this.canvas.getContext('2d'), ratio = this.canvas.width / this.width;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.timeline.draw(c);
    page.drawnOnce();
  }
  moved() { page.keepPlace(); this.card.hidden = true; }
  fit() { this.timeline.show(0, this.timeline.data.end); }
  say(text) { page.say(text); }

  // --- pointer
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  }
  wheel(event) {
    event.preventDefault();
    const at = this.point(event);
    if (event.ctrlKey || event.metaKey) this.timeline.zoom(Math.exp(event.deltaY * 0.0025), at.x);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.timeline.pan((event.deltaX || event.deltaY) / this.width);
    else this.timeline.scrollBy(event.deltaY);
  }
  press(event) {
    const at = this.point(event), timeline = this.timeline;
    this.canvas.focus();
    this.canvas.setPointerCapture(event.pointerId);
    this.card.hidden = true;
    const how = at.y < kOverviewHeight ? 'overview' : event.button === 1 ? 'pan' : 'range';
    this.drag = {how, at, time: timeline.time(at.x), from: timeline.from, to: timeline.to, moved: false};
    if (how === 'overview') this.jump(at);
  }
  jump(at) {
    const timeline = this.timeline, centre = (at.x - kGutter) / timeline.width() * timeline.data.end, half = (timeline.to - timeline.from) / 2;
    timeline.show(centre - half, centre + half);
  }
  move(event) {
    const at = this.point(event), timeline = this.timeline;
    timeline.pointer = at;
    if (this.drag) this.dragTo(at);
    else this.hover(at);
    this.requestDraw();
  }
  dragTo(at) {
    const drag = this.drag, timeline = this.timeline;
    if (Math.abs(at.x - drag.at.x) > 3) drag.moved = true;
    if (drag.how === 'overview') this.jump(at);
    else if (drag.how === 'pan') timeline.show(drag.from - (at.x - drag.at.x) / timeline.width() * (drag.to - drag.from), drag.to - (at.x - drag.at.x) / timeline.width() * (drag.to - drag.from));
    else if (drag.moved) timeline.range = [Math.min(drag.time, timeline.time(at.x)), Math.max(drag.time, timeline.time(at.x))];
  }
  release(event) {
    const drag = this.drag, at = this.point(event), timeline = this.timeline;
    this.drag = null;
    if (!drag || drag.how !== 'range') return;
    if (drag.moved) return this.showDetails();
    const row = timeline.rowAt(at.y);
    if (row && row.head != null) {
      if (timeline.folded.has(row.head)) timeline.folded.delete(row.head);
      else timeline.folded.add(row.head);
      timeline.layOut();
      return timeline.scrollBy(0);
    }
    timeline.range = null;
    timeline.select(timeline.spanAt(at.x, at.y), false);
  }
  leave() {
    if (this.timeline) this.timeline.pointer = null;
    this.card.hidden = true;
    this.requestDraw();
  }
  hover(at) {
    const place = this.timeline.spanAt(at.x, at.y);
    this.card.hidden = !place;
    if (!place) return;
    const s = place.lane.spans, data = this.timeline.data, op = data.ops[s.op[place.i]], name = data.names[s.name[place.i]];
    this.card.replaceChildren(element('b', {}, swatch(s.meaning[place.i]), (data.short[s.name[place.i]] || name || '').slice(0, 200)), facts([
      ['takes', timeText(s.duration[place.i])], ['for', op ? opText(op) : ''], ['module', op ? op.layer : ''],
      ['line', op ? op.line : ''], ['step', s.step[place.i] ? String(s.step[place.i] - 1) : '']]));
    const box = this.card.getBoundingClientRect(), row = this.timeline.rowAt(at.y), below = this.canvas.offsetTop + this.timeline.top() + row.y - this.timeline.scroll + row.height + 6;
    this.card.style.left = Math.max(kGutter, Math.min(at.x + 12, this.width - 310)) + 'px';
    this.card.style.top = (below + box.height > this.height + this.canvas.offsetTop ? Math.max(0, below - row.height - 12 - box.height) : below) + 'px';
  }
  zoomToSelected() {
    const chosen = this.timeline.selected;
    if (!chosen) return;
    const s = chosen.lane.spans, start = s.start[chosen.i], length = Math.max(s.duration[chosen.i], kLeastSpan / 2);
    this.timeline.show(start - length * 0.5, start + length * 1.5);
  }

  // --- details
  showDetails() {
    const timeline = this.timeline, title = timeline.range ? 'Selected range' : 'Details';
    const content = timeline.range ? this.rangeDetails() : timeline.selected ? this.spanDetails() : this.noDetails();
    this.details.replaceChildren(element('header', {}, title), element('div', {class: 'body'}, ...content));
  }
  noDetails() {
    const run = this.timeline.run;
    return [element('p', {class: 'secondary'}, 'Click a block for what it is. Drag over a stretch for what it consists of.'), element('p', {}, '\u00a0'),
      facts([['run', run.name], ['length', timeText(this.timeline.data.end)], ['spans', fixed(this.timeline.lanes.reduce((sum, lane) => sum + lane.all, 0), 0)],
        ['in this file', fixed(this.timeline.lanes.reduce((sum, lane) => sum + lane.count, 0), 0)], ['trace', run.traced]])];
  }
  spanDetails() {
    const {lane, i, partner} = this.timeline.selected, s = lane.spans, data = this.timeline.data;
    const name = data.names[s.name[i]] || '', brief = data.short[s.name[i]] || name, op = data.ops[s.op[i]], shape = data.shapes[s.shape[i]];
    let count = 0, total = 0, inStep = 0, stepTotal = 0;
    for (let k = 0; k < s.count; ++k)
      if (s.name[k] === s.name[i]) {
        ++count, total += s.duration[k];
        if (s.step[k] === s.step[i]) ++inStep, stepTotal += s.duration[k];
      }
    const list = [['duration', timeText(s.duration[i])], ['mean', timeText(total / count) + ' of ' + fixed(count, 0)], ['start', timeText(s.start[i])],
      ['lane', lane.title], ['op', op ? opText(op) : ''], ['module', op ? op.layer : ''], ['phase', op ? op.phase : ''], ['line', op ? op.line : ''],
      ['step', s.step[i] ? (s.step[i] - 1) + (inStep > 1 ? ': ' + inStep + ' of this name, ' + timeText(stepTotal) : '') : ''],
      ['FLOP', op && op.flops ? fixed(op.flops, 0) : ''],
      ['grid × block', shape && shape.block[0] ? shape.grid.join(' × ') + ' · ' + shape.block.join(' × ') : ''], ['registers', shape && shape.registers ? String(shape.registers) : ''],
      ['shared', shape && shape.shared ? bytesText(shape.shared) : ''], ['bytes', shape && shape.bytes ? bytesText(shape.bytes) : ''], ['kind', shape ? shape.kind : '']];
    const content = [element('h3', {}, swatch(s.meaning[i]), brief.slice(0, 300)), brief !== name ? element('div', {class: 'mono'}, name.slice(0, 3000)) : null, facts(list)];
    if (partner) {
      const delay = partner.lane.spans.start[partner.i] - s.start[i];
      content.push(element('p', {}, '\u00a0'), element('button', {onclick: () => this.timeline.select({lane: partner.lane, i: partner.i}, true)},
        (lane.kind === 'api' ? 'What it launched, ' : 'The call that launched it, ') + signedTime(delay)));
    }
    return content;
  }
  rangeDetails() {
    const [from, to] = this.timeline.range, sums = this.timeline.sums(from, to);
    const rows = sums.slice(0, 300).map(sum => ({...sum, us: sum.total / 1000}));
    return [facts([['length', timeText(to - from)], ['begins', timeText(from)]]), new DataTable([{title: 'name', key: 'name', meaning: true},
      {title: 'µs', key: 'us', decimals: 1}, {title: 'count', key: 'count', decimals: 0}], rows, {sorted: 'us'}).node];
  }

  // --- finding
  async lookFor() {
    const text = this.search.value.trim(), timeline = this.timeline, sums = await timeline.find(text);
    if (this.search.value.trim() !== text) return;
    this.found.hidden = !text;
    const rows = sums.slice(0, 40).map(sum => element('button', {onclick: () => { this.found.hidden = true; timeline.select(sum.place, true); this.canvas.focus(); }},
      swatch(sum.meaning), element('span', {class: 'name'}, sum.name.slice(0, 200)), element('span', {class: 'quiet'}, fixed(sum.count, 0) + ' × · ' + timeText(sum.total))));
    this.found.replaceChildren(...(rows.length ? rows : [element('p', {class: 'quiet none'}, 'No name contains this.')]));
  }
  searchKey(event) {
    if (event.key === 'Enter') this.found.hidden = true, this.timeline.nextHit();
    if (event.key === 'Escape') this.search.value = '', this.lookFor(), this.canvas.focus();
    event.stopPropagation();
  }

  // --- keyboard, as in the window
  key(event) {
    const timeline = this.timeline, x = timeline.pointer ? timeline.pointer.x : null;
    const keys = {w: () => timeline.zoom(0.7, x), s: () => timeline.zoom(1 / 0.7, x), a: () => timeline.pan(-0.2), d: () => timeline.pan(0.2), f: () => this.fit(),
      '.': () => timeline.sameName(true), ',': () => timeline.sameName(false), m: () => this.mark(), '/': () => this.search.focus(), n: () => timeline.nextHit(),
      ArrowLeft: () => timeline.pan(-0.1), ArrowRight: () => timeline.pan(0.1), ArrowUp: () => timeline.scrollBy(-40), ArrowDown: () => timeline.scrollBy(40),
      Home: () => this.toEnd(0), End: () => this.toEnd(1), Enter: () => this.selectPointed(), Escape: () => this.clear()};
    const act = keys[event.key] || keys[event.key.toLowerCase()];
    if (!act) return false;
    act();
    return true;
  }
  mark() {
    const timeline = this.timeline, time = timeline.pointer && timeline.pointer.x > kGutter ? timeline.time(timeline.pointer.x) : (timeline.from + timeline.to) / 2;
    timeline.marks.push(time);
    timeline.marks.sort((a, b) => a - b);
    this.requestDraw();
  }
  toEnd(end) {
    const timeline = this.timeline, length = timeline.to - timeline.from;
    if (end) timeline.show(timeline.data.end - length, timeline.data.end);
    else timeline.show(0, length);
  }
  selectPointed() {
    const at = this.timeline.pointer;
    if (at) this.timeline.select(this.timeline.spanAt(at.x, at.y), false);
  }
  clear() {
    this.timeline.range = null, this.timeline.selected = null, this.timeline.hits = null, this.timeline.marks = [];
    this.showDetails();
    this.requestDraw();
  }
}

const kKeys = [['W S', 'zoom in and out'], ['A D', 'pan'], ['Ctrl wheel', 'zoom at the pointer'], ['Shift wheel', 'pan'], ['drag', 'sum a range'], ['F', 'fit'],
  ['. ,', 'next and previous of the same name'], ['/', 'find'], ['N', 'next match'], ['M', 'mark a moment'], ['Enter', 'select what is under the pointer'],
  ['Esc', 'clear selection, marks and matches'], ['Home End', 'begin and end of the run'], ['↑ ↓', 'scroll the lanes'], ['1 … 9', 'tabs'], ['T', 'dark or light'], ['?', 'these keys']];

class Page {
  constructor() { this.run = 0, this.pair = 0, this.tab = 0, this.started = false; }

  build() {
    this.stage = new Stage();
    this.state = element('span');
    this.views = element('main', {class: 'views'});
    this.tabs = this.tabList();
    this.bar = element('nav', {class: 'bar', role: 'tablist', 'aria-label': 'Pages'});
    this.keys = this.keyList();
    document.getElementById('app').replaceChildren(this.top(), this.bar, this.views, element('footer', {class: 'state'}, this.state, element('span', {class: 'space'}),
      element('span', {}, 'made by ' + pageHead.by)), this.keys);
    for (const tab of this.tabs) {
      tab.node = element('section', {class: 'view' + (tab.fill ? ' fill' : ''), role: 'tabpanel', 'aria-label': tab.title});
      this.views.append(tab.node);
    }
    this.timelines = pageHead.runs.map((run, i) => new Timeline(run, i, this.stage));
    document.addEventListener('keydown', event => this.key(event));
    addEventListener('hashchange', () => this.toPlace());
    addEventListener('resize', () => this.wider());
  }
  tabList() {
    const runs = pageHead.runs, tabs = [{title: 'Summary', make: () => summaryView()}];
    tabs.push({title: 'Timeline', fill: true, ofRun: true, make: () => this.stageNodes()});
    tabs.push({title: 'Kernels', ofRun: true, make: run => this.kernelPane(run)});
    if (runs.some(run => run.modules.length)) tabs.push({title: 'Modules', ofRun: true, make: run => this.tablePane('Modules', 'sum of ' + run.counted, moduleTable(run))});
    if (runs.length > 1) tabs.push({title: 'Compare', make: () => this.comparePanes()});
    if (runs.some(run => run.ranks)) tabs.push({title: 'Ranks', ofRun: true, make: run => run.ranks ? ranksView(run) : element('p', {class: 'notice'}, 'This run has one rank.')});
    return tabs;
  }
  top() {
    const runs = pageHead.runs, first = runs[0], about = element('p', {class: 'about'});
    const machines = [...new Set(runs.map(run => run.device).filter(Boolean))].join(', ');
    for (const text of [dateText(first.created), machines, first.machine.driver ? 'driver ' + first.machine.driver : '', first.machine.system, runs.length === 1 ? first.name : runs.length + ' runs'])
      if (text) about.append(element('span', {}, text));
    this.themeButton = element('button', {onclick: () => this.setTheme(theme() === 'dark' ? 'light' : 'dark'), title: 'Dark or light (T)'}, '◐');
    return element('header', {class: 'top'}, element('div', {class: 'say'}, element('h1', {}, conclusion()), about),
      element('div', {class: 'tools'}, this.themeButton, element('button', {onclick: () => this.keys.showModal(), title: 'Keyboard (?)'}, 'Keys ', element('kbd', {}, '?'))));
  }
  keyList() {
    const list = element('div', {class: 'keys'});
    for (const [keys, what] of kKeys) list.append(element('span', {}, ...keys.split(' ').flatMap(key => [element('kbd', {}, key), ' '])), element('span', {}, what));
    const dialog = element('dialog', {}, element('h2', {}, 'Keyboard'), list);
    dialog.append(element('button', {onclick: () => dialog.close()}, 'Close'));
    return dialog;
  }

  fillBar() {
    this.bar.replaceChildren(...this.tabs.map((tab, i) => element('button', {class: 'tab', role: 'tab', 'aria-selected': i === this.tab, onclick: () => this.open(i)}, tab.title)),
      element('span', {class: 'space'}));
    if (pageHead.runs.length > 1 && this.tabs[this.tab].ofRun)
      this.bar.append(element('div', {class: 'runs'}, ...pageHead.runs.map((run, i) => element('button', {class: 'run', 'aria-pressed': i === this.run, onclick: () => this.choose(i), title: run.name},
        badge(i), element('span', {class: 'name'}, run.name)))));
  }
  open(i) {
    this.tab = i;
    const tab = this.tabs[i], key = tab.ofRun ? this.run : 0;
    this.tabs.forEach((one, k) => one.node.classList.toggle('on', k === i));
    this.fillBar();
    if (tab.fill || tab.made !== key + theme()) {
      tab.made = key + theme();
      tab.node.replaceChildren(...[tab.make(pageHead.runs[this.run])].flat());
    }
    if (tab.fill) this.stage.show(this.timelines[this.run]), this.stage.resize();
    this.say('');
    this.keepPlace();
  }
  // Charts have the width of the page.
  wider() {
    clearTimeout(this.resizing);
    this.resizing = setTimeout(() => {
      if (this.tabs[this.tab].fill) return;
      this.tabs[this.tab].made = null;
      this.open(this.tab);
    }, 120);
  }
  choose(run) {
    const before = this.timelines[this.run], after = this.timelines[run];
    if (run !== this.run && before.data.end === after.data.end) after.from = before.from, after.to = before.to;
    this.run = run;
    this.open(this.tab);
  }
  stageNodes() { return [this.stage.node, this.stage.details]; }
  tablePane(title, note, table) {
    const filter = element('input', {type: 'search', placeholder: 'Filter', 'aria-label': 'Filter', oninput: event => table.setFilter(event.target.value)});
    return pane('', title, note, flush(table.node), filter);
  }
  kernelPane(run) {
    const choices = [['Kernels', () => kernelTable(run)]];
    if (run.op) choices.push(['Ops', () => groupTable('op', run.op)]);
    if (run.line) choices.push(['Lines', () => groupTable('line', run.line)]);
    if (run.sources && run.sources.length) choices.push(['Source', null]);
    const place = element('div'), show = i => {
      const tools = segments(choices.map(([name]) => name), i, show);
      if (!choices[i][1]) return place.replaceChildren(sourcePane(run, tools));
      const table = choices[i][1]();
      const filter = element('input', {type: 'search', placeholder: 'Filter', 'aria-label': 'Filter', oninput: event => table.setFilter(event.target.value)});
      place.replaceChildren(pane('', choices[i][0], 'all of the run; click a heading to sort', flush(table.node), ...(choices.length > 1 ? [tools] : []), filter));
    };
    show(0);
    return place;
  }
  comparePanes() {
    const place = element('div'), show = i => place.replaceChildren(compareView(pageHead.pairs[i]));
    show(0);
    if (pageHead.pairs.length === 1) return place;
    const labels = pageHead.pairs.map(pair => pageHead.runs[0].letter + ' and ' + pageHead.runs[pair.b].letter);
    return element('div', {}, body(segments(labels, 0, show)), place);
  }
  showTime(run, [from, to]) {
    this.run = run;
    this.open(this.tabs.findIndex(tab => tab.fill));
    const length = Math.max(to - from, kLeastSpan);
    this.timelines[run].range = [from, to];
    this.timelines[run].show(from - length, to + length);
    this.stage.showDetails();
  }
  say(text) { this.state.textContent = text || (this.tabs[this.tab].fill ? 'drag sums a range · Ctrl and wheel zoom · double click zooms to the chosen block' : pageHead.runs.map(run => run.letter + ' ' + run.file).join(' · ')); }
  setTheme(name) {
    document.documentElement.dataset.theme = name;
    this.open(this.tab);
  }
  drawnOnce() {
    if (this.started) return;
    this.started = true;
    performance.mark('first picture');
  }
  key(event) {
    if (event.target.tagName === 'INPUT' || event.ctrlKey || event.metaKey || event.altKey || this.keys.open) return;
    const button = event.target.tagName === 'BUTTON' && (event.key === 'Enter' || event.key === ' ');
    if (button) return;
    if (event.key === '?') this.keys.showModal();
    else if (event.key === 't' || event.key === 'T') this.setTheme(theme() === 'dark' ? 'light' : 'dark');
    else if (event.key >= '1' && event.key <= '9' && this.tabs[event.key - 1]) this.open(event.key - 1);
    else if (!this.tabs[this.tab].fill || !this.stage.key(event)) return;
    event.preventDefault();
  }

  // The place in the address can be sent along with the file.
  keepPlace() {
    if (this.following) return;
    clearTimeout(this.keeping);  // a browser refuses more than some changes a second
    this.keeping = setTimeout(() => this.putPlace(), 250);
  }
  putPlace() {
    const parts = ['tab=' + this.tabs[this.tab].title.toLowerCase(), 'theme=' + theme()];
    if (pageHead.runs.length > 1) parts.push('run=' + pageHead.runs[this.run].letter);
    const timeline = this.timelines[this.run];
    if (timeline.from !== timeline.data.first[0] || timeline.to !== timeline.data.first[1]) parts.push('from=' + Math.round(timeline.from), 'to=' + Math.round(timeline.to));
    if (location.protocol !== 'about:') history.replaceState(null, '', '#' + parts.join('&'));  // a frame of a notebook has no address
  }
  toPlace() {
    const wanted = new URLSearchParams(location.hash.slice(1)), from = Number(wanted.get('from')), to = Number(wanted.get('to'));
    this.following = true;
    const light = matchMedia('(prefers-color-scheme: light)').matches;
    document.documentElement.dataset.theme = ['dark', 'light'].includes(wanted.get('theme')) ? wanted.get('theme') : light ? 'light' : 'dark';
    const run = pageHead.runs.findIndex(one => one.letter === wanted.get('run'));
    if (run >= 0) this.run = run;
    if (wanted.has('from') && to > from) this.timelines[this.run].from = from, this.timelines[this.run].to = to;
    const tab = this.tabs.findIndex(one => one.title.toLowerCase() === wanted.get('tab'));
    this.open(tab >= 0 ? tab : 0);
    this.following = false;
  }
}

const opText = op => op.detail.startsWith(op.name) ? op.detail : [op.name, op.detail].filter(Boolean).join(' · ');
const sentence = text => /^[a-z]+( |$)/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;  // a name stays: train.py:3

function conclusion() {
  const runs = pageHead.runs, run = runs[0];
  if (runs.length > 1) return pageHead.headline;
  if (run.ranks && run.ranks.finding) return sentence(run.ranks.finding);
  if (run.insights.length) return sentence(run.insights[0].headline);
  const time = run.stats.step_time_us;
  return time ? run.name + ': ' + fixed(time.median, 1) + ' µs per step' : run.name;
}

const page = new Page();

function cannotShow(sentence) {
  document.getElementById('app').replaceChildren(element('p', {class: 'notice'}, sentence));
}

async function start() {
  if (typeof DecompressionStream === 'undefined')
    return cannotShow('This browser cannot unpack the page: it has no DecompressionStream. Open the file in Chrome or Edge 80, Firefox 113 or Safari 16.4, or newer.');
  try {
    pageHead = JSON.parse(new TextDecoder().decode(await unpacked('head')));
    document.title = conclusion() + ' · Warpsight';
    page.build();
    page.toPlace();
    document.documentElement.dataset.ready = 'yes';
    performance.mark('ready');
  } catch (problem) {
    cannotShow('The page cannot be shown: ' + problem.message);
  }
}
start();
