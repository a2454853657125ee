// What every page does where JavaScript runs: follow the stream while somebody looks, keep what was opened,
// choose a theme. All of it is comfort: each page is whole without.
"use strict";

// htmx's sse extension asks for its EventSource here. A browser keeps six connections a host: a page that
// nobody sees gives its own back, and takes the page again when it is seen.
class Stream extends EventTarget {
  constructor(url) {
    super();
    this.url = url;
    this.names = new Set();
    this.closed = false;
    this.look = () => (document.hidden ? this.source?.close() : this.open());
    document.addEventListener("visibilitychange", this.look);
    if (!document.hidden) this.open();
  }

  open() {
    this.source?.close();
    this.source = new EventSource(this.url);
    this.source.onopen = (event) => this.onopen?.(event);
    this.source.onerror = (event) => {
      if (this.source.readyState === EventSource.CLOSED) this.close(); // refused: the extension makes another
      this.onerror?.(event);
    };
    for (const name of this.names) this.listen(name);
  }

  listen(name) {
    this.source?.addEventListener(name, (event) => this.dispatchEvent(new MessageEvent(name, { data: event.data })));
  }

  addEventListener(name, ...rest) {
    super.addEventListener(name, ...rest);
    if (this.names.has(name)) return;
    this.names.add(name);
    this.listen(name);
  }

  get readyState() {
    return this.closed ? EventSource.CLOSED : this.source?.readyState ?? EventSource.CONNECTING;
  }

  close() {
    this.closed = true;
    document.removeEventListener("visibilitychange", this.look);
    this.source?.close();
  }
}
htmx.createEventSource = (url) => new Stream(url);

const live = document.getElementById("live");
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && live) htmx.trigger(live, "refresh");
});

// Here and now, whatever a script has made of the address since; no anchor, or each refresh would scroll to it.
document.addEventListener("htmx:configRequest", (event) => {
  if (event.target === live && event.detail.path.startsWith(location.origin)) event.detail.path = location.pathname + location.search;
});

// Nobody looks, or somebody copies: not now. The next event or the next quarter of a minute will do.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target === live && (document.hidden || getSelection().type === "Range")) event.preventDefault();
});

// What the reader opened stays open, what was typed or chosen stays, what a script drew stays drawn.
const changed = (node) => node.value !== node.defaultValue || node.checked !== node.defaultChecked || node.selected !== node.defaultSelected;
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) => {
  if (node.hasAttribute("data-kept") || (name === "open" && node.localName === "details")) return false;
  return !(["value", "checked", "selected"].includes(name) && node.matches("input, textarea, option") && changed(node));
};
Idiomorph.defaults.callbacks.beforeNodeRemoved = (node) => !node.hasAttribute?.("data-kept");

const lost = () => {
  const status = document.getElementById("status");
  if (status.textContent === "no answer") return; // a live region: touch it only when it changes
  status.textContent = "no answer";
  status.className = "pill ill";
};
document.addEventListener("htmx:sendError", lost);
document.addEventListener("htmx:responseError", (event) => event.target === live && lost());

const THEMES = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
const button = document.getElementById("theme");
const theme = () => document.documentElement.dataset.theme ?? "auto";
const show = () => {
  button.dataset.now = theme();
  button.textContent = THEMES[theme()];
};
button.addEventListener("click", () => {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(theme()) + 1) % names.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    if (next === "auto") localStorage.removeItem("theme");
    else localStorage.setItem("theme", next);
  } catch { /* no storage: chosen for this page alone */ }
  show();
  document.dispatchEvent(new CustomEvent("themechange"));
});
show();
button.hidden = false;
