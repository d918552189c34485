(function () {
"use strict";
var XHTML = "http://www.w3.org/1999/xhtml", SVG = "http://www.w3.org/2000/svg";
var root = document.currentScript ? document.currentScript.closest("svg") : document.documentElement;
var group = root.querySelector("#boxes");
var TOP = +group.dataset.top, ROW = +group.dataset.row, ROWS = +group.dataset.rows;
var TINY = 2e-5, SIDE = 3;

/* The boxes of the file: name, position and row of each, callers first. */
var last = [];
var boxes = Array.from(group.children).map(function (element, index) {
  var rect = element.querySelector("rect"), title = element.querySelector("title").textContent, lines = title.split("\n");
  var row = Math.round((+rect.getAttribute("y") - TOP) / ROW), isFirst = element.classList.contains("first");
  var box = {
    index: index, element: element, rect: rect, text: element.querySelector("text"), row: row,
    x: parseFloat(rect.getAttribute("x")), width: parseFloat(rect.getAttribute("width")),
    name: lines[0], full: lines.length > 2 ? lines[0] + " (" + lines[1] + ")" : lines[0], title: title, parent: isFirst ? null : last[row - 1] || null, isShown: true, isMatch: false
  };
  last[row] = box;
  return box;
});

var state = { zoom: null, search: "", isFlame: false };
var letter = 7.3;

function measure() {
  var probe = document.createElementNS(SVG, "text");
  probe.textContent = "MMMMMMMMMMMMMMMMMMMM";
  group.appendChild(probe);
  letter = probe.getComputedTextLength() / 20 || letter;
  group.removeChild(probe);
}

function isAbove(box, of) {
  for (var at = of ? of.parent : null; at; at = at.parent) if (at === box) return true;
  return false;
}

function cut(name, room) {
  var letters = Array.from(name), most = Math.floor(room / letter);
  if (letters.length <= most) return name;
  if (most < 3) return "";
  var head = Math.ceil((most - 1) * 0.6);
  return letters.slice(0, head).join("") + "\u2026" + letters.slice(letters.length - (most - 1 - head)).join("");
}

function show() {
  var zoom = state.zoom, from = zoom ? zoom.x : 0, to = zoom ? zoom.x + zoom.width : 100, span = to - from;
  var pixels = root.getBoundingClientRect().width || innerWidth;
  boxes.forEach(function (box) {
    var left = Math.max(box.x, from), right = Math.min(box.x + box.width, to), width = (right - left) / span * 100;
    box.isShown = right - left > Math.min(TINY, box.width / 2) && width * pixels / 100 > 0.05;
    box.element.style.display = box.isShown ? "" : "none";
    if (!box.isShown) return;
    var x = (left - from) / span * 100, y = TOP + ROW * (state.isFlame ? ROWS - 1 - box.row : box.row);
    box.rect.setAttribute("x", x + "%");
    box.rect.setAttribute("width", width + "%");
    box.rect.setAttribute("y", y);
    box.element.classList.toggle("above", isAbove(box, zoom));
    box.element.classList.toggle("match", box.isMatch);
    var name = cut(box.name, width * pixels / 100 - 2 * SIDE);
    if (name && !box.text) {
      box.text = document.createElementNS(SVG, "text");
      box.text.setAttribute("dx", SIDE);
      box.element.appendChild(box.text);
    }
    if (box.text) {
      box.text.textContent = name;
      box.text.setAttribute("x", x + "%");
      box.text.setAttribute("y", y + 13);
    }
  });
  reset.disabled = !zoom && !state.search;
  fitHead(pixels);
}

/* Cuts the title and the notes to the width of the picture. */
var heads = Array.from(root.querySelectorAll(".title,.note")).map(function (element) {
  return { element: element, text: element.textContent, letter: element.id === "title" ? 9.8 : 6.75, x: +element.getAttribute("x") };
});
function fitHead(pixels) {
  heads.forEach(function (head) {
    if (head.x > 10) return;
    var most = Math.floor((pixels - 20) / head.letter);
    head.element.textContent = head.text.length <= most ? head.text : head.text.slice(0, Math.max(0, most - 1)) + "\u2026";
  });
}

/* Marks the boxes that match, and shows their share of the total. A match inside another match does not count again. */
function find() {
  var wanted = state.search.toLowerCase(), found = 0, all = 0, count = 0;
  boxes.forEach(function (box) {
    box.isMatch = wanted !== "" && box.full.toLowerCase().indexOf(wanted) >= 0;
    box.isInMatch = box.parent ? box.parent.isMatch || box.parent.isInMatch : false;
    if (!box.parent) all += box.width;
    if (box.isMatch) count++;
    if (box.isMatch && !box.isInMatch) found += box.width;
  });
  output.textContent = wanted === "" ? "" : count + " found, " + (all ? found / all * 100 : 0).toFixed(1) + "%";
}

function remember() {
  var parts = [];
  if (state.zoom) parts.push("zoom=" + state.zoom.index);
  if (state.search) parts.push("search=" + encodeURIComponent(state.search));
  if (state.isFlame) parts.push("flame");
  var hash = parts.length ? "#" + parts.join("&") : "";
  if (hash !== location.hash) {
    try { history.pushState(null, "", hash || location.href.split("#")[0]); } catch (error) { location.hash = hash; }
  }
}

function recall() {
  state = { zoom: null, search: "", isFlame: false };
  location.hash.slice(1).split("&").forEach(function (part) {
    var equals = part.indexOf("="), key = equals < 0 ? part : part.slice(0, equals), value = equals < 0 ? "" : part.slice(equals + 1);
    if (key === "zoom" && boxes[+value] && +value > 0) state.zoom = boxes[+value];
    if (key === "search") try { state.search = decodeURIComponent(value); } catch (error) { state.search = value; }
    if (key === "flame") state.isFlame = true;
  });
  input.value = state.search;
  flip.setAttribute("aria-pressed", String(state.isFlame));
  find();
  show();
}

function change(by) {
  Object.assign(state, by);
  flip.setAttribute("aria-pressed", String(state.isFlame));
  find();
  show();
  remember();
}

/* Flips the picture, and scrolls to the outermost callers. */
function turn() {
  change({ isFlame: !state.isFlame });
  scrollTo(0, state.isFlame ? document.documentElement.scrollHeight : 0);
}

function zoomTo(box) {
  change({ zoom: box && (box.parent || !box.element.classList.contains("first")) && box.width < 100 - TINY ? box : null });
}

var focused = null;
function focus(box) {
  if (!box) return;
  if (focused) focused.element.removeAttribute("tabindex");
  focused = box;
  box.element.setAttribute("tabindex", "0");
  box.element.setAttribute("role", "img");
  box.element.setAttribute("aria-label", box.title);
  box.element.focus();
}

function boxOf(target) {
  var element = target.closest ? target.closest("#boxes > g") : null;
  return element ? boxes.find(function (box) { return box.element === element; }) : null;
}

function beside(box, step) {
  for (var at = box.index + step; boxes[at]; at += step) {
    if (boxes[at].row === box.row && boxes[at].isShown) return boxes[at];
  }
  return null;
}

function below(box) {
  for (var at = box.index + 1; boxes[at] && boxes[at].row > box.row; at++) {
    if (boxes[at].parent === box && boxes[at].isShown) return boxes[at];
  }
  return null;
}

group.addEventListener("click", function (event) {
  var box = boxOf(event.target);
  if (box) zoomTo(box === state.zoom ? null : box);
});

document.addEventListener("keydown", function (event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    input.value = "";
    change({ zoom: null, search: "" });
    return;
  }
  if (event.target === input) return;
  var at = focused || state.zoom || boxes[0], up = state.isFlame ? "ArrowDown" : "ArrowUp", down = state.isFlame ? "ArrowUp" : "ArrowDown";
  if (event.key === "/") input.focus();
  else if (event.key === "f") turn();
  else if (event.target.closest(".bar")) return;
  else if (event.key === up) focus(at.parent);
  else if (event.key === down) focus(focused ? below(at) : at);
  else if (event.key === "ArrowLeft") focus(beside(at, -1));
  else if (event.key === "ArrowRight") focus(beside(at, 1));
  else if ((event.key === "Enter" || event.key === " ") && focused) zoomTo(focused);
  else return;
  event.preventDefault();
});

function html(name, text, label) {
  var element = document.createElementNS(XHTML, name);
  if (text) element.textContent = text;
  if (label) { element.setAttribute("aria-label", label); element.setAttribute("title", label); }
  bar.appendChild(element);
  return element;
}

var holder = document.createElementNS(SVG, "foreignObject");
[["x", 10], ["y", 66], ["width", "100%"], ["height", 36]].forEach(function (pair) { holder.setAttribute(pair[0], pair[1]); });
var bar = document.createElementNS(XHTML, "div");
bar.setAttribute("class", "bar");
bar.setAttribute("role", "toolbar");
holder.appendChild(bar);
root.appendChild(holder);
var input = html("input", "", "Search names (/)");
input.setAttribute("type", "search");
input.setAttribute("placeholder", "Search");
var reset = html("button", "Reset", "Show all (Escape)");
var flip = html("button", "Flip", "Callers at the bottom (f)");
var output = html("output");
output.setAttribute("aria-live", "polite");
input.addEventListener("input", function () { change({ search: input.value }); });
reset.addEventListener("click", function () { input.value = ""; change({ zoom: null, search: "" }); });
flip.addEventListener("click", turn);

measure();
recall();
addEventListener("hashchange", recall);
addEventListener("popstate", recall);
var waiting = 0;
addEventListener("resize", function () {
  clearTimeout(waiting);
  waiting = setTimeout(show, 50);
});
})();
