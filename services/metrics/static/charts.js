// Draws each <figure class="chart" data-chart="URL"> with uPlot in place of the SVG that the server drew:
// with a cursor, live, and smoothed if asked. The SVG and the table of figures stay for everybody else.
//
// URL answers {"x": [...], "series": [{"name", "unit", "points": [...], "dash": bool}], "x_name": "step"},
// null where there is no figure. Without a URL the figures are those of the table in the figure.
// `data-smooth` on the figure offers the moving average.
"use strict";

const HEIGHT = 232; // pixels, legend not counted
const WEIGHT = 0.8; // of what was before, in the moving average
const COLOURS = ["--one", "--two", "--three", "--four"];
const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3]];
const FEWEST = 20; // points that are worth smoothing
const FEW = 30; // points that are drawn as such

const probe = document.createElement("span"); // a canvas cannot resolve var(): an element can
probe.hidden = true;
document.body.append(probe);
const colour = (name, alpha = 1) => {
  probe.style.color = `var(${name})`;
  const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g);
  return `rgb(${r} ${g} ${b} / ${alpha})`;
};

// Exponential moving average without the bias of its start: Kingma and Ba, 2015, section 3, as TensorBoard's.
const smoothed = (points) => {
  let sum = 0, seen = 0;
  return points.map((value) => {
    if (value === null) return null;
    sum = WEIGHT * sum + (1 - WEIGHT) * value;
    return sum / (1 - WEIGHT ** ++seen);
  });
};

const number = (text) => {
  const value = Number.parseFloat(text.replaceAll(",", ""));
  return Number.isFinite(value) ? value : null;
};

const tabled = (figure) => {
  const heads = [...figure.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
  const rows = [...figure.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => number(cell.textContent)));
  return {
    x: rows.map((row) => row[0]),
    x_name: heads[0],
    series: heads.slice(1).map((name, index) => ({ name, points: rows.map((row) => row[index + 1]) })),
  };
};

const told = async (figure) => {
  if (!figure.dataset.chart) return tabled(figure);
  const answer = await fetch(figure.dataset.chart, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`${figure.dataset.chart}: ${answer.status}`);
  return answer.json();
};

const remembered = () => {
  try { return localStorage.getItem("smooth") !== "no"; } catch { return true; }
};
const remember = (smooth) => {
  try { localStorage.setItem("smooth", smooth ? "yes" : "no"); } catch { /* for this page alone */ }
};

// As engineers write them: 0.00035 is 3.5e-4.
const exponential = (value) => (value ? Number(value.toPrecision(4)).toExponential() : "0");
const figure = (value) => (Math.abs(value) < 1e-3 ? exponential(value) : value.toPrecision(4));
const ticks = (_, values) => {
  const small = Math.max(...values.map(Math.abs)) < 0.01;
  return values.map((value) => (small ? exponential(value) : value.toLocaleString("en-US", { maximumFractionDigits: 6 })));
};

// Where no cursor is, the legend tells the last figures.
const latest = (chart) => {
  if (chart.cursor.idx == null && chart.data[0].length) chart.setLegend({ idx: chart.data[0].length - 1 }, false);
};

let serial = 0;

class Plot {
  constructor(figure, data) {
    this.figure = figure;
    this.area = document.createElement("div");
    this.area.className = "plot";
    this.area.id = `plot-${++serial}`; // one that the server does not know: nothing is morphed into it
    this.area.dataset.kept = "";
    this.area.setAttribute("role", "img");
    figure.querySelector("svg").after(this.area);
    figure.dataset.kept = "";
    figure.classList.add("drawn");
    if ("smooth" in figure.dataset) this.offer();
    this.take(data);
    this.watch = new ResizeObserver(() => this.fit());
    this.watch.observe(figure);
  }

  offer() {
    const label = document.createElement("label");
    label.className = "smooth";
    label.id = `smooth-${serial}`;
    label.dataset.kept = "";
    this.box = document.createElement("input");
    this.box.type = "checkbox";
    this.box.checked = remembered();
    this.box.addEventListener("change", () => {
      remember(this.box.checked);
      for (const plot of plots.values()) if (plot.box) plot.smooth(this.box.checked);
    });
    label.append(this.box, "Smooth");
    this.figure.querySelector("figcaption").append(label);
  }

  smooth(wanted) {
    this.box.checked = wanted;
    this.take(this.data);
  }

  // The figures changed: as many lines, new points; another number of lines, a new chart.
  take(data) {
    this.data = data;
    const told = ["svg desc", "svg title", "figcaption"].map((part) => this.figure.querySelector(part)).find(Boolean);
    this.area.setAttribute("aria-label", told.textContent.trim());
    const lines = this.lines(data);
    const values = [data.x, ...lines.map((line) => line.points)];
    const kind = lines.map((line) => `${line.name} ${line.faint}`).join("|");
    if (this.kind === kind) {
      this.chart.setData(values);
      return;
    }
    this.kind = kind;
    this.chart?.destroy();
    this.chart = new uPlot(this.options(data, lines), values, this.area);
  }

  // What is drawn: each series, or faintly what it is and over it its average.
  lines({ series }) {
    return series.flatMap((one, index) => {
      const line = { ...one, index };
      if (!this.box?.checked || one.points.length < FEWEST) return [line];
      return [{ ...line, faint: true }, { ...line, name: `${one.name}, smoothed`, points: smoothed(one.points) }];
    });
  }

  options(data, lines) {
    const axis = {
      stroke: () => colour("--soft"),
      font: `12px ${getComputedStyle(document.body).fontFamily}`,
      ticks: { show: false },
      grid: { stroke: () => colour("--line"), width: 1 },
    };
    return {
      width: this.width(),
      height: HEIGHT,
      cursor: { y: false, points: { size: 7 } },
      scales: { x: { time: data.x_name === "time" } },
      axes: [{ ...axis, grid: { show: false }, size: 30 }, { ...axis, size: 56, values: ticks }],
      legend: { markers: { width: 0 } },
      hooks: { setCursor: [latest], ready: [latest], setData: [latest] },
      series: [{ label: data.x_name.replace(/^./, (first) => first.toUpperCase()) }, ...lines.map((line) => this.line(line))],
    };
  }

  line({ name, dash, index, faint }) {
    const first = this.figure.classList.contains("series-2") ? "--two" : COLOURS[0];
    const own = index ? COLOURS[index % COLOURS.length] : first;
    return {
      label: name,
      stroke: () => colour(own, faint ? 0.28 : 1),
      width: faint ? 1.25 : 2,
      dash: dash ? DASHES[1] : DASHES[index % DASHES.length],
      class: faint ? "faint" : null,
      spanGaps: true,
      points: { show: (chart, row) => chart.data[row].filter((value) => value !== null).length <= FEW, size: 6 },
      value: (_, value) => (value === null ? "–" : figure(value)),
    };
  }

  width() {
    const { paddingLeft, paddingRight } = getComputedStyle(this.figure);
    return Math.max(200, this.figure.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight));
  }

  fit() {
    if (this.chart && Math.abs(this.chart.width - this.width()) > 1) this.chart.setSize({ width: this.width(), height: HEIGHT });
  }

  end() {
    this.watch.disconnect();
    this.chart.destroy();
  }
}

const plots = new Map();

const draw = async (figure) => {
  const data = await told(figure);
  if (data.x.length < 2 || !figure.isConnected) return;
  if (plots.has(figure)) plots.get(figure).take(data);
  else plots.set(figure, new Plot(figure, data));
};

const drawAll = () => {
  for (const [figure, plot] of plots) {
    if (figure.isConnected) continue;
    plot.end();
    plots.delete(figure);
  }
  for (const figure of document.querySelectorAll("figure.chart[data-chart]")) draw(figure).catch(console.warn);
};

const repaint = () => {
  for (const { chart } of plots.values()) chart.redraw();
};

document.addEventListener("themechange", repaint);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
document.addEventListener("htmx:afterSettle", drawAll);
drawAll();
