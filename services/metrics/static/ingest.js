// The line of the threshold follows the hand. What it says is what pages/scores.py says; when the hand lets go,
// the page is taken again with that threshold in its address, so that lists and tables go along.
"use strict";
document.documentElement.classList.add("scripted");

const moved = (input) => {
  const threshold = Number(input.value), inForce = Number(input.dataset.inForce);
  const bars = [...document.querySelectorAll("#scores rect[data-score]")];
  const from = (score) => bars.reduce((sum, bar) => sum + (bar.dataset.score >= score ? Number(bar.dataset.contents) : 0), 0);
  for (const bar of bars) bar.setAttribute("class", bar.dataset.score < threshold ? "below" : "above");
  for (const end of ["x1", "x2"]) document.getElementById("threshold-line").setAttribute(end, `${threshold / 1.01}%`);
  const said = document.getElementById("said"), words = sentence(threshold, inForce, from(threshold), from(inForce), from(0));
  if (said.textContent !== words) said.textContent = words;
};

const sentence = (threshold, inForce, admitted, before, total) => {
  const number = (value) => value.toLocaleString("en-US");
  const share = total ? Math.floor((200 * admitted + total) / (2 * total)) : 0;
  const all = `${number(admitted)} of ${number(total)} contents (${share} %)`;
  if (threshold === inForce) return `${threshold} is in force: it admits ${all}.`;
  if (admitted === before) return `${threshold} would admit as many as ${inForce} does: ${all}.`;
  const change = `${number(Math.abs(admitted - before))} ${admitted > before ? "more" : "fewer"}`;
  return `${threshold} would admit ${change} than ${inForce} does: ${all}.`;
};

// Listened for where it does not go away: the page is taken again and morphed while it is open.
document.addEventListener("input", (event) => event.target.id === "threshold" && moved(event.target));
document.addEventListener("change", (event) => {
  if (event.target.id !== "threshold") return;
  const address = new URL(location);
  if (event.target.value === event.target.dataset.inForce) address.searchParams.delete("threshold");
  else address.searchParams.set("threshold", event.target.value);
  history.replaceState(history.state, "", address);
  htmx.trigger(document.getElementById("live"), "refresh");
});
document.addEventListener("htmx:afterSettle", () => {
  const input = document.getElementById("threshold");
  if (input) moved(input);
});
