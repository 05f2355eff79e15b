// The data of a path: the extremes of bins, at levels each twice as coarse as the one before.
"use strict";

function pathLevels(data) {
  function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0)), view = new DataView(bytes.buffer);
    return Float32Array.from({length: bytes.length / 4}, (_, i) => view.getFloat32(4 * i, true));
  }

  // When rows came, in seconds since 1970, if that is known: the first of each bin, and in between evenly.
  function seconds(text) {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0)), view = new DataView(bytes.buffer);
    return Float64Array.from({length: bytes.length / 8}, (_, i) => view.getFloat64(8 * i, true));
  }
  const times = data.times ? seconds(data.times) : null;

  function when(row) {
    if (!times) return "";
    const i = Math.min(Math.max(Math.floor((row - 1) / data.each), 0), times.length - 1);
    const part = (row - 1) / data.each - i, next = Math.min(i + 1, times.length - 1);
    const moment = new Date(1000 * (times[i] + part * (times[next] - times[i]))), {step, utc} = data.clock;
    if (isNaN(moment)) return "";
    const words = moment.toISOString().replace("T", " ");
    const length = step >= 86400 ? 10 : step >= 60 ? 16 : step ? 19 : 23;
    return words.slice(0, length) + (utc && length > 10 ? "Z" : "");
  }

  function halved(values, better) {
    const half = new Float32Array(Math.ceil(values.length / 2));
    for (let i = 0; i < half.length; i++) {
      const a = values[2 * i], b = 2 * i + 1 < values.length ? values[2 * i + 1] : NaN;
      half[i] = isNaN(a) ? b : isNaN(b) ? a : better(a, b);
    }
    return half;
  }

  const finest = {each: data.each, high: unpacked(data.high), top: unpacked(data.thresholdHigh)};
  finest.low = data.low ? unpacked(data.low) : finest.high;
  finest.bottom = data.thresholdLow ? unpacked(data.thresholdLow) : finest.top;
  const levels = [finest];
  while (levels[levels.length - 1].high.length > 200) {
    const last = levels[levels.length - 1];
    levels.push({
      each: 2 * last.each, high: halved(last.high, Math.max), low: halved(last.low, Math.min),
      top: halved(last.top, Math.max), bottom: halved(last.bottom, Math.min),
    });
  }

  return {
    when,

    // The finest level that shows these rows in at most so many bins.
    forRows: (from, to, bins) => levels.find(level => (to - from) / level.each <= bins) || levels[levels.length - 1],

    // The bins that hold these rows, with one more at either end.
    bins: (level, from, to) => [
      Math.max(Math.floor((from - 1) / level.each) - 1, 0),
      Math.min(Math.ceil(to / level.each) + 1, level.high.length),
    ],

    // The row in the middle of a bin.
    middle: (level, i) => (i * level.each + Math.min((i + 1) * level.each, data.rows) + 1) / 2,

    // The least and the largest value of some bins, with room around them.
    range(level, first, last) {
      let low = Infinity, high = -Infinity;
      for (let i = first; i < last; i++) {
        low = Math.min(low, isNaN(level.low[i]) ? low : level.low[i], isNaN(level.bottom[i]) ? low : level.bottom[i]);
        high = Math.max(high, isNaN(level.high[i]) ? high : level.high[i], isNaN(level.top[i]) ? high : level.top[i]);
      }
      if (!(high >= low)) return [0, 1];
      const room = (high - low) * 0.06 || 1;
      return [low - room, high + 2 * room];
    },
  };
}
