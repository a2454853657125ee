// Every few seconds, take the page again and put its new parts in place. Without this, reload by hand.
const PERIOD = 5000; // milliseconds

async function refresh() {
  if (document.hidden || getSelection().type === "Range") return; // nobody looks, or somebody copies
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(answer.statusText);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const focused = document.activeElement, place = focused.closest("#live [id]:not(section)");
  if (focused.closest("#live") && !place) return; // a keyboard user is where we could not lead back to
  for (const open of document.querySelectorAll("details[open]")) {
    fresh.getElementById(open.id)?.setAttribute("open", "");
  }
  document.getElementById("live").replaceWith(fresh.getElementById("live"));
  if (place) document.getElementById(place.id)?.querySelector(focused.localName)?.focus();
  const status = document.getElementById("status"), now = fresh.getElementById("status");
  if (status.textContent !== now.textContent) { // a live region: touch it only when it changes
    status.textContent = now.textContent;
    status.className = now.className;
  }
  document.title = fresh.title;
}

async function lost() {
  const status = document.getElementById("status");
  if (status.textContent !== "no answer") {
    status.textContent = "no answer";
    status.className = "pill ill";
  }
}

setInterval(() => refresh().catch(lost), PERIOD);
