// Curves above the lanes, on the axis of the timeline: losses, accuracy, memory, counters.
const kCurveHeights = {loss: 88, accuracy: 56, memory: 70, counter: 46};
const kCurveTitles = {loss: 'loss', accuracy: 'test accuracy, %', memory: 'memory'};
const kMostCounters = 4;

function curvePanes(curves) {
  const panes = [];
  for (const group of ['loss', 'accuracy', 'memory']) {
    const some = curves.filter(curve => curve.group === group && (group !== 'memory' || curve.unit === 'B'));
    if (some.length) panes.push({group, title: kCurveTitles[group], height: kCurveHeights[group], curves: some, log: group === 'loss' && logHelps(some)});
  }
  for (const curve of curves.filter(one => one.group === 'counter').slice(0, kMostCounters))
    panes.push({group: 'counter', title: curve.name + (curve.unit ? ', ' + curve.unit : ''), height: kCurveHeights.counter, curves: [curve], log: false});
  return panes;
}

function logHelps(curves) {
  const values = curves.flatMap(curve => curve.v).filter(value => value != null);
  return values.length > 1 && values.every(value => value > 0) && Math.max(...extremes(values)) > 10 * Math.min(...extremes(values));
}
function extremes(values) {
  let least = Infinity, most = -Infinity;
  for (const value of values) {
    if (value == null || !Number.isFinite(value)) continue;
    least = Math.min(least, value), most = Math.max(most, value);
  }
  return [least, most];
}

function curveScale(pane) {
  let [least, most] = extremes(pane.curves.flatMap(curve => curve.v));
  if (!(most > -Infinity)) return null;
  if (pane.group === 'accuracy') least = Math.max(0, least - 1), most = Math.min(100, most + 1);
  else if (!pane.log) least = Math.min(0, least);
  if (most === least) most = least + (Math.abs(least) || 1);
  const of = value => pane.log ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least);
  return {least, most, of};
}

const curveText = (pane, value) => pane.group === 'memory' ? bytesText(value) : pane.group === 'loss' ? fixed(value, value < 0.1 ? 4 : 3) : fixed(value, value < 10 ? 2 : 1);
const isStair = pane => pane.group === 'memory' || pane.group === 'counter';

// The value at a time: of a stair the last one before, else of the nearest point.
function valueAt(pane, curve, time) {
  const next = firstNotLess(curve.t, time);
  if (isStair(pane) || next >= curve.t.length) return next > 0 ? curve.v[next - 1] : null;
  return curve.v[next];
}

function drawCurvePane(c, timeline, pane, y) {
  const colours = ink(), scale = curveScale(pane), bottom = y + pane.height - 7, tall = pane.height - 22;
  c.fillStyle = colours.border;
  c.fillRect(0, y, timeline.stage.width, 1);
  c.font = kLetters;
  c.fillStyle = colours.secondary;
  c.fillText(fitted(c, pane.title, kGutter - 26), 18, y + 15);
  if (!scale) return;
  c.font = kSmallLetters;
  c.fillStyle = colours.quiet;
  const label = (text, at) => c.fillText(text, kGutter - 6 - c.measureText(text).width, at);
  label(curveText(pane, scale.most), y + 17);
  if (pane.height > 50) label(curveText(pane, scale.least), bottom + 1);
  c.save();
  c.beginPath();
  c.rect(kGutter, y, timeline.width(), pane.height);
  c.clip();
  pane.curves.forEach((curve, i) => drawCurve(c, timeline, pane, curve, i, scale, bottom, tall));
  drawCurveValues(c, timeline, pane, y);
  c.restore();
}

// The curves of one memory have the colour of the run; the reserved bytes are dashed.
const curveColour = (timeline, pane, i) => pane.group === 'memory' ? (i < 2 ? runColour(timeline.index) : ink().quiet) : ink().runs[(pageHead.runs[timeline.index].colour + i) % 8];

function drawCurve(c, timeline, pane, curve, i, scale, bottom, tall) {
  const height = value => bottom - scale.of(value) * tall, colour = curveColour(timeline, pane, i);
  const first = Math.max(0, firstNotLess(curve.t, timeline.from) - 1);
  c.beginPath();
  let last = null, before = null, x = kGutter;
  for (let k = first; k < curve.t.length; ++k) {
    const value = curve.v[k];
    if (value == null || (pane.log && value <= 0)) continue;
    x = timeline.x(curve.t[k]);
    if (last == null) c.moveTo(x, height(value));
    else if (isStair(pane)) c.lineTo(x, height(before)), c.lineTo(x, height(value));
    else c.lineTo(x, height(value));
    last = k, before = value;
    if (curve.t[k] > timeline.to) break;
  }
  if (before == null) return;
  if (isStair(pane)) c.lineTo(timeline.x(Math.max(timeline.data.end, curve.t[last])), height(before));
  c.strokeStyle = colour;
  c.lineWidth = 1.6;
  c.setLineDash(i > 0 && pane.group === 'memory' ? [4, 2] : []);
  c.stroke();
  c.setLineDash([]);
  if (pane.group === 'accuracy' || curve.t.length === 1)
    for (let k = first; k < curve.t.length; ++k) {
      c.fillStyle = colour;
      c.fillRect(timeline.x(curve.t[k]) - 2, height(curve.v[k]) - 2, 4, 4);
    }
}

function drawCurveValues(c, timeline, pane, y) {
  const pointer = timeline.pointer, time = pointer && pointer.x > kGutter ? timeline.time(pointer.x) : timeline.to;
  let x = timeline.stage.width - 8;
  c.font = kSmallLetters;
  [...pane.curves].reverse().forEach((curve, back) => {
    const value = valueAt(pane, curve, time), i = pane.curves.length - 1 - back;
    const text = (pane.curves.length > 1 ? curve.name + ' ' : '') + (value == null ? kUnknown : curveText(pane, value));
    x -= c.measureText(text).width;
    c.fillStyle = ink().base;
    c.globalAlpha = 0.8;
    c.fillRect(x - 18, y + 3, c.measureText(text).width + 20, 15);
    c.globalAlpha = 1;
    c.fillStyle = curveColour(timeline, pane, i);
    c.fillRect(x - 14, y + 9, 9, 3);
    c.fillStyle = ink().text;
    c.fillText(text, x, y + 14);
    x -= 26;
  });
}
