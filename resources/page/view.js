// Elements, numbers, colours. A name from a run only ever becomes the text of an element.
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key.startsWith('aria-') && value != null) node.setAttribute(key, String(value));
    else if (value === true) node.setAttribute(key, '');
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.filter(child => child != null));
  return node;
}

function drawn(tag, attributes = {}, text) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text != null) node.textContent = text;
  return node;
}

const kMinus = '\u2212', kThin = '\u2009', kUnknown = '–';

function fixed(value, decimals) {
  if (value == null || !Number.isFinite(value)) return kUnknown;
  const text = Math.abs(value).toFixed(decimals), [whole, rest] = text.split('.');
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, kThin) : whole;
  return (value < 0 && Number(text) !== 0 ? kMinus : '') + grouped + (rest ? '.' + rest : '');
}
const signed = (value, decimals) => (value > 0 && Number(value.toFixed(decimals)) !== 0 ? '+' : '') + fixed(value, decimals);

function timeText(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return fixed(ns / 1e9, size >= 1e10 ? 1 : 3) + kThin + 's';
  if (size >= 1e6) return fixed(ns / 1e6, size >= 1e8 ? 1 : 2) + kThin + 'ms';
  if (size >= 1e3) return fixed(ns / 1e3, size >= 1e5 ? 1 : 2) + kThin + 'µs';
  return fixed(ns, 0) + kThin + 'ns';
}

function bytesText(bytes) {
  if (bytes == null) return kUnknown;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0, value = bytes;
  while (Math.abs(value) >= 1024 && unit < 4) value /= 1024, ++unit;
  return fixed(value, unit === 0 ? 0 : value >= 100 ? 0 : value >= 10 ? 1 : 2) + kThin + units[unit];
}

const percentText = share => share == null ? kUnknown : fixed(100 * share, 1) + kThin + '%';

// By meaning: matrix product, pointwise, loss, optimizer, copy, allocation, sync, launch gaps, idle, other, communication, reduction.
const kFills = {
  dark: ['#3A85EB', '#2DC698', '#F6D94B', '#D1A3FC', '#B4E7F6', '#EA3A3A', '#7B7F85', '#565E6C', '#464D5A', '#8F98A8', '#D23CC3', '#EF8200'],
  light: ['#3D82E2', '#6DCB92', '#F9D632', '#D29DF3', '#BCE6F8', '#EC3A38', '#8D9098', '#BDC2CB', '#BAC1CC', '#9AA3B0', '#D23CC3', '#EF8200']};
const kInk = {
  dark: {base: '#1B1E24', header: '#1F2329', border: '#2B303A', strong: '#414957', grid: '#272C35', text: '#E7EAF0', secondary: '#AAB2C0',
    quiet: '#8F98A8', focus: '#6AA8FF', fill: '#0B0E13', edge: 'rgba(0,0,0,.35)', mark: '#282D36',
    runs: ['#CCAA78', '#4ADADC', '#E64E91', '#A8CB14', '#AE89FF', '#76FFC1', '#7EA8CF', '#C6FC7E']},
  light: {base: '#FFFFFF', header: '#F6F7F9', border: '#D6DAE1', strong: '#B4BBC7', grid: '#E6E9EE', text: '#191C22', secondary: '#48505D',
    quiet: '#5F6772', focus: '#1C69E0', fill: '#12151A', edge: 'rgba(18,21,26,.45)', mark: '#F6F7F9',
    runs: ['#6E4306', '#03586F', '#9A1655', '#2B8309', '#5C3198', '#9933B3', '#696A8C', '#2A3600']}};

const theme = () => document.documentElement.dataset.theme;
const fillOf = meaning => kFills[theme()][meaning] || kFills[theme()][9];
const ink = () => kInk[theme()];
let pageHead = null;
const meaningCount = () => pageHead.meanings.length;
const meaningOf = name => pageHead.meanings.indexOf(name);

function swatch(meaning) {
  const node = element('span', {class: 'swatch'});
  node.style.background = fillOf(meaning);
  return node;
}

const runColour = index => ink().runs[pageHead.runs[index].colour];
function badge(index) { return element('span', {class: 'badge', 'data-run': pageHead.runs[index].colour}, pageHead.runs[index].letter); }

function pane(size, title, note, body, ...tools) {
  return element('section', {class: 'pane ' + size},
    element('header', {}, element('h2', {}, title), element('span', {class: 'note'}, note || ''), element('span', {class: 'space'}), ...tools), body);
}
const body = (...children) => element('div', {class: 'body'}, ...children);
const flush = (...children) => element('div', {class: 'body flush'}, ...children);

function facts(pairs) {
  const list = element('dl', {class: 'facts'});
  for (const [name, value] of pairs)
    if (value != null && value !== '') list.append(element('dt', {}, name), element('dd', {}, value));
  return list;
}

// Width of a chart in a pane that takes this share of the page. The page is drawn again when its width changes.
const chartWidth = share => Math.max(420, Math.min(1600, share * (innerWidth - 12) - 36));

// Exclusive buttons. choose(index) is called for each click.
function segments(labels, chosen, choose) {
  const row = element('div', {class: 'segments', role: 'group'});
  labels.forEach((label, i) => row.append(element('button', {'aria-pressed': i === chosen, onclick: () => {
    [...row.children].forEach((button, k) => button.setAttribute('aria-pressed', k === i));
    choose(i);
  }}, label)));
  return row;
}
