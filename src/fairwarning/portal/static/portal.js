// Everything a page does in the browser. A page works without it; with it, it is alive.
"use strict";

// Every word comes from the server, which has them all in one place.
const WORDS = document.body.dataset;

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

function span(seconds) {
  let left = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [size, unit] of UNITS) {
    if (left >= size || (unit === "s" && !parts.length)) {
      parts.push(`${Math.floor(left / size)} ${unit}`);
      left %= size;
    }
  }
  return parts.slice(0, 2).join(" ");
}

// The server's clock may be virtual, so time left is counted from what it said, and stands
// still with it.
const isVirtual = document.body.hasAttribute("data-virtual");
let serverNow = Date.parse(document.body.dataset.now || "") || Date.now();
let saidAt = performance.now();
function now() {
  return isVirtual ? serverNow : serverNow + (performance.now() - saidAt);
}

// To make a formatter takes far longer than to use it, so each is made once.
const FORMS = {};
function dated(at, kind) {
  const dateStyle = kind === "time" ? undefined : "medium";
  const timeStyle = kind === "date" ? undefined : "medium";
  FORMS[kind] ||= new Intl.DateTimeFormat(undefined, { dateStyle, timeStyle });
  return FORMS[kind].format(at);
}

function timeText(each, at) {
  const kind = each.dataset.when;
  if (kind === "left") {
    const left = (at - now()) / 1000;
    each.classList.toggle("soon", left < 300);
    return left > 0 ? span(left) : WORDS.due;
  }
  if (kind !== "ago") return dated(at, kind);
  const past = (now() - at) / 1000;
  if (Math.abs(past) < 2) return WORDS.justNow;
  return past > 0 ? WORDS.ago.replace("{span}", span(past)) : WORDS.ahead.replace("{span}", span(-past));
}

function writeTimes(root) {
  for (const each of root.querySelectorAll("time[data-when]")) {
    const text = timeText(each, new Date(each.dateTime));
    // A text that is set again is laid out again, even if it is the same.
    if (each.textContent !== text) each.textContent = text;
  }
}

// What scrolls sideways can be scrolled by keyboard, also if there is no link inside.
function reach(root) {
  for (const each of root.querySelectorAll(".scroll:not([role])")) {
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  }
}

// What the server sent for each live part, because times and tables are changed after that.
const sent = new Map();
for (const part of document.querySelectorAll("[data-live]")) sent.set(part.id, part.innerHTML);

const WRITTEN = "input[id]:not([type=checkbox]):not([type=radio]):not([type=hidden]), textarea[id], select[id]";
function isChanged(field) {
  const options = field.options && [...field.options];
  if (!options) return field.value !== field.defaultValue;
  return field.value !== (options.find((each) => each.defaultSelected) || options[0])?.value;
}

function swap(fresh) {
  if (fresh.body.dataset.now) {
    serverNow = Date.parse(fresh.body.dataset.now);
    saidAt = performance.now();
  }
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = part.id && fresh.getElementById(part.id);
    if (!other) { part.remove(); continue; }
    if (sent.get(part.id) === other.innerHTML && part.className === other.className) continue;
    // Somebody is being asked whether to send this form: it must still be there afterwards.
    if (part.querySelector("form[data-asking]")) continue;
    if (part.contains(document.activeElement) && document.activeElement.matches("input:not([type=checkbox]), textarea, select")) continue;
    const open = [...part.querySelectorAll("details[open][id]")].map((each) => each.id);
    const ticked = [...part.querySelectorAll("input[type=checkbox][id]:checked")].map((each) => each.id);
    const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
    const typed = [...part.querySelectorAll(WRITTEN)].filter(isChanged);
    sent.set(part.id, other.innerHTML);
    writeTimes(other);
    part.replaceWith(other);
    reach(other);
    equipTables(other);
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    for (const { id, value } of typed) { const field = document.getElementById(id); if (field) field.value = value; }
    for (const id of ticked) { const box = document.getElementById(id); if (box) box.checked = true; }
    if (focused) document.getElementById(focused)?.focus();
  }
}

let asking = false;
let askAgain = false;
// What answers a form is there once: to ask for it again would not show it again.
const isAnswer = document.body.hasAttribute("data-answer");
async function refresh() {
  if (isAnswer) return;
  if (asking) { askAgain = true; return; }
  asking = true;
  // The stream tells of a change once, so whoever was not answered must ask again.
  let unanswered = true;
  try {
    const answer = await fetch(location.href, { headers: { "X-Live": "1" } });
    unanswered = answer.status >= 500;
    if (answer.ok && !answer.redirected) swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch { /* the stream says when the server is back */ }
  asking = false;
  if (askAgain) { askAgain = false; refresh(); }
  else if (unanswered) setTimeout(refresh, 1000);
}

function live() {
  if (isAnswer || !document.querySelector("[data-live]")) return;
  const offline = document.getElementById("offline");
  const stream = new EventSource(document.querySelector("[data-rehearsal]") ? "/stream?rehearsal" : "/stream");
  let wasLost = false;
  stream.addEventListener("open", () => {
    if (offline) offline.hidden = true;
    if (wasLost) refresh();
    wasLost = false;
  });
  stream.addEventListener("error", () => {
    wasLost = true;
    setTimeout(() => { if (wasLost && offline) offline.hidden = false; }, 3000);
  });
  stream.addEventListener("change", refresh);
}

// The question of a form, or of one of its buttons, is asked before the form is sent.
function confirmed({ ask, askTitle }) {
  const dialog = document.getElementById("confirm");
  document.getElementById("confirm-title").textContent = askTitle || "";
  document.getElementById("confirm-text").textContent = ask;
  document.getElementById("confirm-yes").textContent = askTitle || WORDS.ok;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  const button = event.submitter;
  const question = button?.dataset.ask ? button.dataset : form.dataset;
  if (!question.ask || form.dataset.sure) return;
  event.preventDefault();
  form.dataset.asking = "1";
  const sure = await confirmed(question);
  delete form.dataset.asking;
  if (sure) {
    form.dataset.sure = "1";
    form.requestSubmit(button);
  } else {
    refresh();
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  try { await navigator.clipboard.writeText(button.dataset.copy); } catch { return; }
  const before = button.textContent;
  button.textContent = WORDS.copied;
  setTimeout(() => { button.textContent = before; }, 1200);
});

// Shows another address in the live parts of this page. `keep` says how the browser remembers it.
async function showAt(url, keep) {
  const answer = await fetch(url, { headers: { "X-Live": "1" } });
  if (!answer.ok) return false;
  keep(url);
  swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
  return true;
}

// A filter that acts while one types; without scripts its button does the same.
let typing;
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-filter]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => {
    const url = new URL(form.action || location.href);
    url.search = new URLSearchParams(new FormData(form)).toString();
    showAt(url, (there) => history.replaceState(null, "", there));
  }, 150);
});

// A link to another view of the same page, such as a zoom, keeps the rest of the page.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-swap]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const isShown = await showAt(link.href, (there) => history.pushState(null, "", there)).catch(() => false);
  if (!isShown) location.href = link.href;
});
addEventListener("popstate", () => { if (document.querySelector("a[data-swap]")) refresh(); });

for (const choice of document.querySelectorAll("[data-theme-choice]")) {
  try { choice.value = localStorage.getItem("theme") || "auto"; } catch { /* private mode */ }
  choice.addEventListener("change", () => {
    try { localStorage.setItem("theme", choice.value); } catch { /* private mode */ }
    if (choice.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice.value;
  });
}

// A field that is wrong may be on another tab: it is shown before the browser points at it.
document.addEventListener("invalid", (event) => {
  const tab = event.target.closest("[data-tabs] > .tab");
  if (!tab) return;
  const tabs = [...tab.parentElement.querySelectorAll(":scope > .tab")];
  tab.parentElement.querySelectorAll(":scope > input")[tabs.indexOf(tab)].checked = true;
}, true);

function showKeys() {
  const dialog = document.getElementById("keys");
  const list = dialog.querySelector("dl");
  const last = list.querySelector("dt:last-of-type");
  const known = list.querySelectorAll("dt").length > 2;
  for (const link of known ? [] : document.querySelectorAll("[data-menu] a[data-key]")) {
    const [keys, said] = [document.createElement("dt"), document.createElement("dd")];
    for (const key of ["g", link.dataset.key]) {
      keys.append(Object.assign(document.createElement("kbd"), { textContent: key }), " ");
    }
    said.textContent = list.dataset.page.replace("{page}", link.textContent);
    last.before(keys, said);
  }
  dialog.showModal();
}

// `/` finds, `g` and a letter goes to a page, `?` lists the keys. Not while somebody writes.
let isGoing = false;
document.addEventListener("keydown", (event) => {
  const isWriting = event.target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
  if (isWriting || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const wasGoing = isGoing;
  isGoing = event.key === "g" && !wasGoing;
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("global-search").focus();
  } else if (event.key === "?") {
    showKeys();
  } else if (wasGoing && /^[a-z]$/.test(event.key)) {
    const link = document.querySelector(`[data-menu] a[data-key="${event.key}"]`);
    if (link) location.href = link.href;
  }
});

const menu = document.querySelector("[data-menu]");
const wide = matchMedia("(min-width: 900px)");
function fold() { if (menu) menu.open = wide.matches; }
wide.addEventListener("change", fold);
fold();

// What the server draws or says in a sentence is in the reader's zone once it knows which.
function tellZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const note = `fairwarning-zone=${zone}`;
  if (!zone || document.cookie.split("; ").includes(note)) return;
  document.cookie = `${note}; path=/; max-age=31536000; SameSite=Strict`;
  refresh();
}

writeTimes(document);
reach(document);
addEventListener("resize", () => reach(document));
setInterval(() => writeTimes(document), 1000);
live();
// Not before the page is painted: a new zone means that the page is asked for once more.
addEventListener("load", tellZone);
