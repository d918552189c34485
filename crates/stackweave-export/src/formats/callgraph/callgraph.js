(function () {
"use strict";
var XHTML = "http://www.w3.org/1999/xhtml", SVG = "http://www.w3.org/2000/svg";
var root = document.currentScript ? document.currentScript.closest("svg") : document.documentElement;
var world = root.querySelector("#world");
var whole = { width: +world.dataset.width, height: +world.dataset.height };
var view = { x: 0, y: 0, scale: 1 };
var LEGIBLE = 0.85;

function room() {
  var box = root.getBoundingClientRect();
  return { width: box.width || innerWidth, height: box.height || innerHeight, left: box.left, top: box.top };
}

function show() {
  world.setAttribute("transform", "translate(" + view.x + " " + view.y + ") scale(" + view.scale + ")");
}

/* The head does not move or scale. It covers the part of the world that is left free for it. */
var head = root.querySelector("#head"), HEAD = +head.dataset.height;

function fit() {
  var size = room();
  view.scale = Math.min(size.width / whole.width, (size.height - HEAD) / (whole.height - HEAD), 1.5);
  view.x = (size.width - whole.width * view.scale) / 2;
  view.y = HEAD - HEAD * view.scale;
  show();
}

/* Shows the whole graph if it is legible; otherwise the box with the highest cost, at a legible size. */
function begin() {
  fit();
  if (view.scale >= LEGIBLE || !boxes.length) return;
  var size = room(), first = boxes[0].querySelector("rect").getBBox(), shift = boxes[0].parentNode.transform.baseVal[0].matrix;
  view.scale = LEGIBLE;
  view.x = size.width / 2 - (first.x + shift.e + first.width / 2) * LEGIBLE;
  view.x = Math.min(0, Math.max(view.x, size.width - whole.width * LEGIBLE));
  if (whole.width * LEGIBLE <= size.width) view.x = (size.width - whole.width * LEGIBLE) / 2;
  view.y = Math.max(size.height / 3 - (first.y + shift.f) * LEGIBLE, size.height - whole.height * LEGIBLE);
  view.y = Math.min(HEAD - HEAD * LEGIBLE, view.y);
  show();
}

function zoom(by, x, y) {
  var scale = Math.min(Math.max(view.scale * by, 0.02), 8);
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  show();
}

function zoomMiddle(by) {
  var size = room();
  zoom(by, size.width / 2, size.height / 2);
}

root.addEventListener("wheel", function (event) {
  event.preventDefault();
  var size = room(), step = event.deltaMode ? event.deltaY * 20 : event.deltaY;
  zoom(Math.exp(-Math.max(-200, Math.min(200, step)) * 0.002), event.clientX - size.left, event.clientY - size.top);
}, { passive: false });

/* One finger or the mouse moves the graph, two fingers zoom. */
var fingers = new Map();
root.addEventListener("pointerdown", function (event) {
  if (event.button || event.target.closest(".bar")) return;
  fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
});
root.addEventListener("pointermove", function (event) {
  var from = fingers.get(event.pointerId);
  if (!from) return;
  if (fingers.size === 1) {
    view.x += event.clientX - from.x;
    view.y += event.clientY - from.y;
    show();
  } else {
    var other = null, size = room();
    fingers.forEach(function (place, id) { if (id !== event.pointerId) other = place; });
    var was = Math.hypot(from.x - other.x, from.y - other.y), is = Math.hypot(event.clientX - other.x, event.clientY - other.y);
    if (was > 0) zoom(is / was, (event.clientX + other.x) / 2 - size.left, (event.clientY + other.y) / 2 - size.top);
  }
  fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
});
["pointerup", "pointercancel", "pointerleave"].forEach(function (name) {
  root.addEventListener(name, function (event) { fingers.delete(event.pointerId); });
});

var boxes = Array.from(world.querySelectorAll(".box"));
var ties = Array.from(world.querySelectorAll(".arrow,.label"));

function mark(ids, isNear) {
  ties.forEach(function (tie) { tie.classList.toggle("near", isNear(tie)); });
  boxes.forEach(function (box) { box.classList.toggle("near", ids.has(box.dataset.id)); });
  world.classList.add("fade");
}

function near(target) {
  var box = target.closest && target.closest(".box"), arrow = target.closest && target.closest(".arrow");
  if (box) {
    var id = box.dataset.id, ids = new Set([id]);
    ties.forEach(function (tie) {
      if (tie.dataset.from === id) ids.add(tie.dataset.to);
      if (tie.dataset.to === id) ids.add(tie.dataset.from);
    });
    mark(ids, function (tie) { return tie.dataset.from === id || tie.dataset.to === id; });
  } else if (arrow) {
    var from = arrow.dataset.from, to = arrow.dataset.to;
    mark(new Set([from, to]), function (tie) { return tie.dataset.from === from && tie.dataset.to === to; });
  } else {
    world.classList.remove("fade");
  }
}

root.addEventListener("pointerover", function (event) { if (!fingers.size) near(event.target); });
root.addEventListener("focusin", function (event) {
  if (event.target.matches(":focus-visible")) near(event.target);
});
root.addEventListener("focusout", function () { world.classList.remove("fade"); });

document.addEventListener("keydown", function (event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  var moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  if (moves[event.key]) {
    view.x += moves[event.key][0];
    view.y += moves[event.key][1];
    show();
  } else if (event.key === "+" || event.key === "=") zoomMiddle(1.25);
  else if (event.key === "-") zoomMiddle(0.8);
  else if (event.key === "0" || event.key === "Escape") fit();
  else return;
  event.preventDefault();
});

var holder = document.createElementNS(SVG, "foreignObject");
var bar = document.createElementNS(XHTML, "div");
bar.setAttribute("class", "bar");
[["Fit", "Show all", fit], ["+", "Nearer", function () { zoomMiddle(1.25); }], ["\u2212", "Farther", function () { zoomMiddle(0.8); }]]
  .forEach(function (entry) {
    var button = document.createElementNS(XHTML, "button");
    button.textContent = entry[0];
    button.setAttribute("aria-label", entry[1]);
    button.setAttribute("title", entry[1]);
    button.addEventListener("click", entry[2]);
    bar.appendChild(button);
  });
holder.appendChild(bar);
holder.setAttribute("width", "130");
holder.setAttribute("height", "34");
root.appendChild(holder);

var lines = Array.from(head.querySelectorAll("text")).map(function (element) {
  return { element: element, text: element.textContent, letter: element.classList.contains("title") ? 9.8 : 6.75 };
});

function resize() {
  var size = room();
  lines.forEach(function (line) {
    var most = Math.floor((size.width - 30) / line.letter);
    line.element.textContent = line.text.length <= most ? line.text : line.text.slice(0, Math.max(0, most - 1)) + "\u2026";
  });
  holder.setAttribute("x", Math.max(0, size.width - 138));
  holder.setAttribute("y", Math.max(0, size.height - 42));
}

root.removeAttribute("viewBox");
root.appendChild(head);
resize();
begin();
addEventListener("resize", resize);
})();
