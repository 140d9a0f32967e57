// Sortable tables and trees. A column: {title, key, decimals or text(value, row), unit}. A number keeps its whole value
// in data-value. A row may have `children`, which a fold arrow shows.
const kMostRows = 1500;

class DataTable {
  constructor(columns, rows, options = {}) {
    this.columns = columns, this.rows = rows, this.options = options;
    this.sorted = options.sorted || null, this.up = false, this.open = new Set(), this.filter = '';
    this.head = element('tr'), this.rowsBody = element('tbody');
    this.node = element('table', {}, element('thead', {}, this.head), this.rowsBody);
    for (const row of rows) if (options.opened && options.opened(row)) this.open.add(row);
    this.fill();
  }
  setFilter(text) {
    this.filter = text.toLowerCase();
    this.fill();
  }
  fill() {
    this.head.replaceChildren(...this.columns.map(column => this.heading(column)));
    const shown = [];
    this.collect(this.rows, 0, shown);
    const rows = shown.slice(0, kMostRows).map(([row, depth]) => this.row(row, depth));
    if (shown.length > kMostRows)
      rows.push(element('tr', {class: 'faint'}, element('td', {colspan: this.columns.length}, (shown.length - kMostRows) + ' more: use the filter')));
    this.rowsBody.replaceChildren(...rows);
  }
  heading(column) {
    const number = this.isNumber(column), chosen = this.sorted === column.key;
    return element('th', {class: number ? 'number' : '', 'aria-sort': chosen ? (this.up ? 'ascending' : 'descending') : null},
      element('button', {onclick: () => this.sort(column)}, column.title));
  }
  isNumber(column) { return column.decimals != null || column.number === true; }
  sort(column) {
    this.up = this.sorted === column.key ? !this.up : !this.isNumber(column);
    this.sorted = column.key;
    this.fill();
  }
  matches(row) {
    return !this.filter || String(row[this.columns[0].key]).toLowerCase().includes(this.filter) || (row.children || []).some(child => this.matches(child));
  }
  ordered(rows) {
    if (!this.sorted) return rows;
    const key = this.sorted, sign = this.up ? 1 : -1;
    const value = row => row[key] == null ? -Infinity : row[key];
    return [...rows].sort((a, b) => sign * (typeof value(a) === 'string' ? String(value(a)).localeCompare(String(value(b))) : value(a) - value(b)));
  }
  collect(rows, depth, out) {
    for (const row of this.ordered(rows)) {
      if (!this.matches(row)) continue;
      out.push([row, depth]);
      if (row.children && row.children.length && (this.open.has(row) || this.filter)) this.collect(row.children, depth + 1, out);
    }
  }
  row(row, depth) {
    const tr = element('tr', {class: row.class || '', onclick: this.options.chosen ? () => this.options.chosen(row) : null});
    this.columns.forEach((column, i) => tr.append(this.cell(column, row, i === 0 ? depth : -1)));
    return tr;
  }
  cell(column, row, depth) {
    const value = row[column.key], number = this.isNumber(column);
    const text = column.text ? column.text(value, row) : number ? fixed(value, column.decimals) : value == null ? '' : String(value);
    const cell = element('td', {class: number ? 'number' : depth >= 0 ? 'text' : 'short', title: number ? null : String(value == null ? '' : value)});
    if (number && value != null) cell.dataset.value = value, cell.dataset.key = column.key;
    if (column.share != null && value != null) {
      const bar = element('i');
      bar.style.width = Math.min(100, 100 * value / Math.max(column.share, 1e-12)) + '%';
      cell.append(element('span', {class: 'share'}, bar));
    }
    if (depth >= 0 && this.options.tree) cell.append(this.fold(row, depth));
    if (column.meaning && row.meaning != null && row.meaning >= 0) cell.append(swatch(row.meaning));
    cell.append(text);
    return cell;
  }
  fold(row, depth) {
    const has = row.children && row.children.length > 0, open = this.open.has(row) || this.filter !== '';
    const button = element('button', {class: 'fold' + (has ? '' : ' none'), 'aria-expanded': has ? open : null, tabindex: has ? 0 : -1, onclick: event => {
      event.stopPropagation();
      if (this.open.has(row)) this.open.delete(row);
      else this.open.add(row);
      this.fill();
    }}, open ? '▾' : '▸');
    button.style.marginLeft = 14 * depth + 'px';
    return button;
  }
}

const us = (title, key, share) => ({title, key, decimals: 2, share});
const kTimeColumns = share => [us('total µs', 'total_us', share), {title: 'count', key: 'count', decimals: 0}, us('mean µs', 'mean_us'),
  us('P50 µs', 'p50_us'), us('P99 µs', 'p99_us')];
const greatest = (rows, key) => rows.reduce((most, row) => Math.max(most, row[key] || 0), 0);

function kernelRows(run) {
  const shapes = new Map();
  for (const shape of run.shapes) {
    const row = {...shape, name: 'grid ' + shape.grid.join('×') + ' · block ' + shape.block.join('×')};
    if (!shapes.has(shape.kernel)) shapes.set(shape.kernel, []);
    shapes.get(shape.kernel).push(row);
  }
  const graphs = run.stats.graphs ? run.stats.graphs.by_name.map(row => ({...row, name: '[graph, as a whole] ' + row.name})) : [];
  const kernels = run.stats.by_name.map(row => {
    const children = shapes.get(row.name) || [];
    return {...row, occupancy: row.shape && row.shape.occupancy ? row.shape.occupancy.share : null, children: children.length > 1 ? children : []};
  });
  return [...graphs, ...kernels, ...(run.stats.cpu_ops || [])];
}

function kernelTable(run) {
  const rows = kernelRows(run);
  return new DataTable([{title: 'kernel', key: 'name'}, ...kTimeColumns(greatest(rows, 'total_us')),
    {title: 'occupancy', key: 'occupancy', number: true, text: percentText}], rows, {tree: true, sorted: 'total_us'});
}

function groupTable(title, table) {
  const rows = [...table.rows, ...table.cpu];
  const columns = [{title, key: 'name'}, ...kTimeColumns(greatest(rows, 'total_us'))];
  if (rows.some(row => row.with_calls_us)) columns.push(us('with calls µs', 'with_calls_us'));
  return new DataTable(columns, rows, {sorted: 'total_us'});
}

// Each module comes before the modules inside it.
function moduleRows(modules) {
  const top = [], open = [];
  for (const module of modules) {
    const row = {...module, gpu_us: module.forward_us + module.backward_us + module.other_us, children: []};
    const inside = outer => module.module.startsWith(outer.module) && './'.includes(module.module[outer.module.length]);
    while (open.length && !inside(open[open.length - 1])) open.pop();
    row.name = open.length ? module.module.slice(open[open.length - 1].module.length + 1) : module.module;
    (open.length ? open[open.length - 1].children : top).push(row);
    open.push(row);
  }
  return top;
}

function moduleTable(run) {
  const rows = moduleRows(run.modules), most = greatest(rows, 'gpu_us') || greatest(rows, 'host_us');
  return new DataTable([{title: 'module', key: 'name'}, us('GPU µs', 'gpu_us', most), us('forward µs', 'forward_us'), us('backward µs', 'backward_us'),
    us('other µs', 'other_us'), us('host µs', 'host_us'), {title: 'kernels', key: 'kernels', decimals: 0},
    {title: 'memory at the peak', key: 'peak_bytes', number: true, text: bytesText}], rows,
    {tree: true, sorted: most === greatest(rows, 'gpu_us') && most > 0 ? 'gpu_us' : 'host_us', opened: () => rows.length < 4});
}

// A source file with the time of each of its lines.
function sourceTable(file) {
  if (!file.lines.length) return element('p', {class: 'notice'}, file.problem || 'The file is empty.');
  const most = Math.max(1e-9, ...Object.values(file.times)), body = element('tbody');
  file.lines.forEach((line, i) => {
    const time = file.times[i + 1], cell = element('td', {class: 'number'});
    if (time != null) {
      const bar = element('i');
      bar.style.width = 100 * time / most + '%';
      cell.dataset.value = time;
      cell.append(element('span', {class: 'share'}, bar), fixed(time, 1));
    }
    body.append(element('tr', {}, cell, element('td', {class: 'number quiet'}, String(i + 1)), element('td', {class: 'source'}, line)));
  });
  return element('table', {class: 'lines'}, body);
}

function sourcePane(run, tools) {
  const place = element('div', {class: 'body flush'}), choice = element('select', {'aria-label': 'File', onchange: () => show(choice.selectedIndex)});
  for (const file of run.sources) choice.append(element('option', {}, file.path));
  const show = i => {
    place.replaceChildren(sourceTable(run.sources[i]));
    const first = place.querySelector('[data-value]');
    if (first) first.scrollIntoView({block: 'center'});
  };
  show(0);
  const changed = run.sources.some(file => file.changed) ? 'a file was changed after the recording, so that lines may have moved' : 'µs in all, by line';
  return pane('', 'Source', changed, place, choice, tools);
}
