// Reads what the page carries: JSON and columns of spans, compressed, in blocks that no browser runs.
function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; ++i) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

const pageParsed = new Promise(done => {
  if (document.readyState !== 'loading') done();
  else document.addEventListener('DOMContentLoaded', () => done());
});

async function unpacked(id) {
  let block = document.getElementById(id);
  if (!block || !block.nextElementSibling) {  // the newest one may be there in part
    await pageParsed;
    block = document.getElementById(id);
  }
  if (!block) throw new Error('The file is cut off: ' + id + ' is missing. Get it again.');
  const packed = new Blob([bytesOf(block.textContent)]);
  block.textContent = '';  // the text is not needed again
  const plain = packed.stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

const chunks = new Map();
function chunk(number) {
  if (!chunks.has(number)) chunks.set(number, unpacked('chunk' + number));
  return chunks.get(number);
}

// Numbers of seven bits a byte. `sums`: each is the difference to the number before, with its sign in the lowest bit.
function readNumbers(bytes, at, out, sums) {
  let sum = 0;
  for (let i = 0; i < out.length; ++i) {
    let value = bytes[at++];
    if (value > 127) {
      value -= 128;
      for (let scale = 128; ; scale *= 128) {
        const next = bytes[at++];
        value += (next & 127) * scale;
        if (next < 128) break;
      }
    }
    if (sums) out[i] = sum += value % 2 ? -(value + 1) / 2 : value / 2;
    else out[i] = value;
  }
}

const kColumns = [['start', Float64Array, true], ['duration', Float64Array, false], ['name', Uint32Array, false],
  ['meaning', Uint8Array, false], ['kind', Uint8Array, false], ['op', Uint32Array, false], ['shape', Uint32Array, false],
  ['step', Uint32Array, true], ['correlation', Uint32Array, true]];

const kGroup = 64;  // spans whose time by meaning is summed, so that a column of many spans is drawn without a visit to each

// The spans of a lane, with what drawing and searching need.
async function loadLane(lane) {
  const bytes = await chunk(lane.chunk), n = lane.count, spans = {count: n};
  let at = lane.at;
  kColumns.forEach(([name, Type, sums], i) => {
    spans[name] = new Type(n);
    readNumbers(bytes, at, spans[name], sums);
    at += lane.lengths[i];
  });
  spans.reach = new Float64Array(n);      // greatest end so far
  spans.before = new Float64Array(n + 1); // time of all spans before
  spans.byMeaning = new Float64Array(Math.ceil(n / kGroup) * meaningCount());
  let reach = -Infinity;
  for (let i = 0; i < n; ++i) {
    reach = Math.max(reach, spans.start[i] + spans.duration[i]);
    spans.reach[i] = reach;
    spans.before[i + 1] = spans.before[i] + spans.duration[i];
    if (spans.meaning[i] >= meaningCount()) spans.meaning[i] = 9;  // other
    spans.byMeaning[Math.floor(i / kGroup) * meaningCount() + spans.meaning[i]] += spans.duration[i];
  }
  return spans;
}

// Bars of the overview: [from, to, meaning, busy share, spans], in columns of the whole time.
function overviewBars(lane) {
  const bars = [], numbers = lane.overview;
  let at = 0;
  for (let i = 0; i + 4 < numbers.length; i += 5) {
    const from = at + numbers[i], to = from + numbers[i + 1];
    bars.push([from / 8192, to / 8192, Math.min(numbers[i + 2], meaningCount() - 1), numbers[i + 3] / 255, numbers[i + 4]]);
    at = to;
  }
  return bars;
}

// The first index whose value is not less than `value`.
function firstNotLess(values, value, from = 0) {
  let low = from, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
