// Moving in the path: wheel, drag, two fingers, keys and buttons; a double click shows all of it again.
"use strict";

(() => {
  const figure = document.getElementById("path-figure"), source = document.getElementById("path-data");
  if (!figure || !source) return;
  const data = JSON.parse(source.textContent), rows = data.rows, closest = Math.min(8, rows);

  const make = (name, properties, parent) => parent.appendChild(Object.assign(document.createElement(name), properties));
  const zoom = make("div", {className: "zoom"}, figure), controls = make("div", {className: "controls"}, zoom);
  const readout = make("output", {}, controls);
  const canvas = make("canvas", {className: "main", tabIndex: 0}, zoom);
  const whole = make("canvas", {className: "whole"}, zoom);
  if (data.levels.length) make("p", {className: "key", textContent: "On the right: by chance once in so many observations."}, zoom);
  canvas.setAttribute("role", "img");
  whole.setAttribute("aria-hidden", "true");
  figure.classList.add("live");

  const drawing = pathDrawing(data, canvas, whole), full = {from: 0.5, to: rows + 0.5};
  let view = {...full}, pointed = null, waiting = false;

  function draw() {
    waiting = false;
    drawing.draw(view, pointed);
    canvas.setAttribute("aria-label", drawing.shown(view));
    readout.textContent = pointed === null ? drawing.shown(view) : drawing.told(pointed);
  }

  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
  }

  function show(from, to) {
    const size = Math.min(Math.max(to - from, closest), rows);
    const start = Math.min(Math.max((from + to - size) / 2, full.from), full.to - size);
    view = {from: start, to: start + size};
    redraw();
  }

  const showAll = () => show(full.from, full.to);
  const scale = (factor, around = (view.from + view.to) / 2) =>
    show(around - (around - view.from) * factor, around + (view.to - around) * factor);
  const rowAt = event => view.from + drawing.place(event) * (view.to - view.from);

  // Buttons and keys

  for (const [label, title, action] of [
    ["−", "Zoom out", () => scale(2)], ["+", "Zoom in", () => scale(0.5)], ["All", "Show all observations", showAll],
  ]) {
    make("button", {type: "button", textContent: label, title}, controls).addEventListener("click", action);
  }
  canvas.addEventListener("keydown", event => {
    const size = view.to - view.from, step = {ArrowLeft: -0.2, ArrowRight: 0.2}[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (step) show(view.from + step * size, view.to + step * size);
    else if (event.key === "+" || event.key === "=") scale(0.5);
    else if (event.key === "-") scale(2);
    else if (event.key === "0" || event.key === "Home") showAll();
    else return;
    event.preventDefault();
  });

  // Wheel, mouse and fingers

  canvas.addEventListener("wheel", event => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY), unit = event.deltaMode === 1 ? 20 : 1;
    if (!sideways && event.deltaY > 0 && view.to - view.from >= rows) return;  // nothing to zoom out of: the page scrolls
    event.preventDefault();
    const moved = event.deltaX * unit / canvas.clientWidth * (view.to - view.from);
    if (sideways) show(view.from + moved, view.to + moved);
    else scale(Math.exp(Math.max(Math.min(event.deltaY * unit, 200), -200) / 300), rowAt(event));
  }, {passive: false});
  canvas.addEventListener("dblclick", showAll);

  const held = new Map();
  let began = null;
  const grip = () => {
    began = {size: view.to - view.from, rows: [...held.values()].map(rowAt)};
    canvas.classList.toggle("held", held.size > 0);
  };
  canvas.addEventListener("pointerdown", event => {
    held.set(event.pointerId, event);
    canvas.setPointerCapture(event.pointerId);
    grip();
  });
  canvas.addEventListener("pointermove", event => {
    const row = Math.round(rowAt(event));
    pointed = row >= Math.max(view.from, 1) && row <= Math.min(view.to, rows) ? row : null;
    if (held.has(event.pointerId)) {
      held.set(event.pointerId, event);
      const [first, second] = [...held.values()].map(drawing.place);
      let size = began.size;
      if (second !== undefined) size = Math.abs((began.rows[1] - began.rows[0]) / Math.max(Math.abs(second - first), 0.02));
      const from = began.rows[0] - first * size;
      show(from, from + size);
    }
    redraw();
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, event => {
      held.delete(event.pointerId);
      grip();
    });
  }
  canvas.addEventListener("pointerleave", () => {
    pointed = null;
    redraw();
  });

  const jump = event => {
    if (event.type === "pointermove" && !event.buttons) return;
    const area = whole.getBoundingClientRect(), half = (view.to - view.from) / 2;
    const row = (event.clientX - area.left) / area.width * rows + 0.5;
    show(row - half, row + half);
  };
  whole.addEventListener("pointerdown", jump);
  whole.addEventListener("pointermove", jump);

  // Links of the form #rows=100-200

  function follow(address) {
    const asked = /^#rows=(\d+)-(\d+)$/.exec(address);
    if (asked) show(Number(asked[1]) - 0.5, Number(asked[2]) + 0.5);
    return asked !== null;
  }
  document.addEventListener("click", event => {
    const link = event.target.closest("a[href^='#rows=']");
    if (!link || !follow(link.getAttribute("href"))) return;
    event.preventDefault();
    figure.scrollIntoView({block: "center"});
  });
  addEventListener("hashchange", () => follow(location.hash));

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  new ResizeObserver(redraw).observe(canvas);
  follow(location.hash);
  draw();
})();
