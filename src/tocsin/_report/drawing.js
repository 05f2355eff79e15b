// A path on two canvases: the rows in view, and below them all rows with the view marked.
"use strict";

function pathDrawing(data, canvas, whole) {
  const levels = pathLevels(data), numbers = new Intl.NumberFormat("en-US");
  const short = value => String(Number(value.toPrecision(4)));
  let drawn = null;

  function prepared(target) {
    const ratio = window.devicePixelRatio || 1, width = target.clientWidth, height = target.clientHeight;
    if (target.width !== Math.round(width * ratio)) target.width = Math.round(width * ratio);
    if (target.height !== Math.round(height * ratio)) target.height = Math.round(height * ratio);
    const pen = target.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.lineJoin = "round";
    return {pen, width, height};
  }

  function colours() {
    const style = getComputedStyle(document.documentElement), found = {};
    for (const name of ["ink", "muted", "rule", "data", "alarm", "onset", "card"]) {
      found[name] = style.getPropertyValue("--" + name).trim();
    }
    return found;
  }

  function ticks(low, high, about) {
    const size = 10 ** Math.floor(Math.log10((high - low) / about));
    const step = size * ([1, 2, 5, 10].find(factor => (high - low) / (size * factor) <= about + 1) || 10), found = [];
    for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(Number((i * step).toPrecision(12)));
    return found;
  }

  // A line, or, where bins are of several rows, the area between their extremes; interrupted where there is no test.
  function trace(pen, level, [first, last], lower, upper, x, y, colour, alpha) {
    pen.strokeStyle = pen.fillStyle = colour;
    for (let start = first; start < last; start++) {
      if (isNaN(upper[start])) continue;
      let end = start;
      while (end < last && !isNaN(upper[end])) end++;
      pen.beginPath();
      for (let i = start; i < end; i++) pen.lineTo(x(levels.middle(level, i)), y(upper[i]));
      if (level.each > 1) {
        for (let i = end - 1; i >= start; i--) pen.lineTo(x(levels.middle(level, i)), y(lower[i]));
        pen.closePath();
        pen.globalAlpha = alpha;
        pen.fill();
        pen.globalAlpha = 1;
      }
      pen.stroke();
      start = end;
    }
  }

  function axes(pen, box, low, high, view, x, y, colour) {
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const tick of ticks(low, high, 5)) {
      pen.fillStyle = colour.rule;
      pen.fillRect(box.left, Math.round(y(tick)), box.width, 1);
      pen.fillStyle = colour.muted;
      pen.fillText(short(tick), box.left - 6, y(tick));
    }
    pen.textAlign = "left";
    let above = Infinity;
    for (const [value, label] of data.levels) {
      if (value < low || value > high || above - y(value) < 15) continue;
      above = y(value);
      pen.fillText(label, box.left + box.width + 8, above);
      pen.fillRect(box.left + box.width, Math.round(above), 4, 1);
    }
    pen.textAlign = "center";
    let before = "", end = -Infinity;
    for (const tick of ticks(view.from, view.to, Math.max(box.width / 140, 2))) {
      if (tick !== Math.round(tick) || tick < 1) continue;
      const label = numbers.format(tick), half = pen.measureText(label).width / 2;
      const place = Math.min(Math.max(x(tick), half), box.left + box.width + box.right - half);
      pen.fillText(label, place, box.top + box.height + 14);
      const moment = levels.when(tick), day = moment.slice(0, 10);
      if (moment) {
        const words = before === day && moment.length > 10 ? moment.slice(11) : moment;
        const side = pen.measureText(words).width / 2;
        const middle = Math.min(Math.max(x(tick), side), box.left + box.width + box.right - side);
        if (middle - side > end) {
          pen.fillText(words, middle, box.top + box.height + 29);
          before = day;
          end = middle + side + 10;
        }
      }
      pen.fillRect(Math.round(x(tick)), box.top + box.height, 1, 4);
    }
  }

  function began(pen, box, view, x, colour) {
    pen.fillStyle = colour.onset;
    for (const [start, estimate, end] of data.spans) {
      if (end < view.from || start > view.to) continue;
      pen.globalAlpha = 0.28;
      pen.fillRect(x(start - 0.5), box.top, Math.max(x(end + 0.5) - x(start - 0.5), 1), box.height);
      pen.globalAlpha = 1;
      pen.fillRect(x(estimate) - 0.75, box.top, 1.5, box.height);
    }
  }

  function alarms(pen, box, view, x, colour) {
    const marks = data.marks.filter(row => row >= view.from && row <= view.to);
    pen.fillStyle = colour.alarm;
    for (const row of marks) {
      if (marks.length > 60) pen.fillRect(x(row) - 0.5, 0, 1, 8);
      else {
        pen.beginPath();
        pen.moveTo(x(row) - 5, 1);
        pen.lineTo(x(row) + 5, 1);
        pen.lineTo(x(row), 10);
        pen.fill();
        pen.globalAlpha = 0.35;
        pen.fillRect(x(row) - 0.5, 10, 1, box.top + box.height - 10);
        pen.globalAlpha = 1;
      }
    }
  }

  function drawWhole(view, colour) {
    const {pen, width, height} = prepared(whole), level = levels.forRows(1, data.rows, width);
    const bins = [0, level.high.length], [low, high] = levels.range(level, ...bins);
    const x = row => (row - 0.5) / data.rows * width, y = value => 4 + (high - value) / (high - low) * (height - 8);
    trace(pen, level, bins, level.low, level.high, x, y, colour.data, 1);
    pen.fillStyle = colour.alarm;
    for (const row of data.marks) pen.fillRect(x(row) - 0.5, 0, 1, 5);
    const left = x(view.from + 0.5), wide = Math.max(x(view.to + 0.5) - left, 3);
    pen.fillStyle = colour.card;
    pen.globalAlpha = 0.7;
    pen.fillRect(0, 0, left, height);
    pen.fillRect(left + wide, 0, width, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = colour.muted;
    pen.strokeRect(left + 0.5, 0.5, wide - 1, height - 1);
  }

  return {
    // pointed: the row that the pointer is at; null if at none.
    draw(view, pointed) {
      const {pen, width, height} = prepared(canvas), colour = colours(), right = data.levels.length ? 64 : 8;
      const box = {left: 46, right, top: 10, width: Math.max(width - 46 - right, 1)};
      box.height = height - (data.times ? 51 : 36);
      const level = levels.forRows(view.from, view.to, box.width), bins = levels.bins(level, view.from, view.to);
      const [low, high] = levels.range(level, ...bins);
      const x = row => box.left + (row - view.from) / (view.to - view.from) * box.width;
      const y = value => box.top + (high - value) / (high - low) * box.height;
      drawn = {level, box};
      axes(pen, box, low, high, view, x, y, colour);
      pen.save();
      pen.beginPath();
      pen.rect(box.left - 5, 0, box.width + 10, box.top + box.height + 1);
      pen.clip();
      began(pen, box, view, x, colour);
      pen.lineWidth = level.each > 1 ? 1 : 1.4;
      trace(pen, level, bins, level.low, level.high, x, y, colour.data, 1);
      trace(pen, level, bins, level.bottom, level.top, x, y, colour.ink, 0.3);
      alarms(pen, box, view, x, colour);
      pen.fillStyle = colour.muted;
      if (pointed !== null) pen.fillRect(Math.round(x(pointed)), box.top, 1, box.height);
      pen.restore();
      drawWhole(view, colour);
    },

    // Where in the plot, from 0 to 1, a pointer is.
    place: event => (event.clientX - canvas.getBoundingClientRect().left - drawn.box.left) / drawn.box.width,

    // What is known of a row.
    told(row) {
      const {level} = drawn, i = Math.min(Math.floor((row - 1) / level.each), level.high.length - 1);
      const start = i * level.each + 1, end = Math.min(start + level.each - 1, data.rows);
      const came = levels.when(start) && `, ${levels.when(start)}`;
      const rows = (end > start ? `Observations ${numbers.format(start)} to ${numbers.format(end)}` :
        `Observation ${numbers.format(start)}`) + came;
      if (isNaN(level.high[i])) return `${rows}: no test yet`;
      const value = (low, high) => low === high ? short(high) : `${short(low)} to ${short(high)}`;
      return `${rows}: statistic ${value(level.low[i], level.high[i])}, ` +
        `threshold ${value(level.bottom[i], level.top[i])}`;
    },

    shown(view) {
      const from = Math.max(Math.ceil(view.from), 1), to = Math.min(Math.floor(view.to), data.rows);
      const came = levels.when(from) && ` (${levels.when(from)} to ${levels.when(to)})`;
      return `Observations ${numbers.format(from)} to ${numbers.format(to)}${came}`;
    },
  };
}
