// What every table can do: sort by a column, show only rows with a text, and be saved as shown.
// The state is in the address, so that a sorted and filtered page can be linked.
"use strict";

const FORMULA = /^[=+\-@\t\r]/;

function keyOf(cell) {
  const time = cell?.querySelector("time");
  if (time) return time.dateTime;
  const text = (cell?.textContent || "").trim();
  return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text.toLowerCase();
}

function compare(one, other) {
  if (typeof one === typeof other) return one < other ? -1 : one > other ? 1 : 0;
  return typeof one === "number" ? -1 : 1;
}

function remember(name, value) {
  const url = new URL(location.href);
  if (value) url.searchParams.set(name, value);
  else url.searchParams.delete(name);
  history.replaceState(null, "", url);
}

// A column of buttons or boxes is neither sorted nor saved.
function isPlain(head) {
  return head.hasAttribute("data-plain") || head.querySelector(".hidden") !== null;
}

function shownRows(table) {
  return [...table.tBodies[0].rows].filter((row) => !row.hidden);
}

function textOf(cell) {
  return cell.querySelector("time")?.dateTime || cell.innerText.trim().replace(/\s+/g, " ");
}

function save(table, id, kind) {
  const heads = [...table.tHead.rows[0].cells];
  const used = heads.map((head, at) => at).filter((at) => heads[at].innerText.trim() && !isPlain(heads[at]));
  const names = used.map((at) => textOf(heads[at]));
  const rows = shownRows(table).map((row) => used.map((at) => (row.cells[at] ? textOf(row.cells[at]) : "")));
  const quoted = (text) => `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  const body = kind === "csv"
    ? [names, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n"
    : JSON.stringify(rows.map((row) => Object.fromEntries(row.map((text, at) => [names[at], text]))), null, 2);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([body], { type: kind === "csv" ? "text/csv" : "application/json" }));
  link.download = `${id}.${kind}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function sortBy(table, at, isDown) {
  const rows = [...table.tBodies[0].rows];
  const keys = new Map(rows.map((row) => [row, keyOf(row.cells[at])]));
  rows.sort((one, other) => compare(keys.get(one), keys.get(other)) * (isDown ? -1 : 1));
  table.tBodies[0].append(...rows);
  for (const [number, head] of [...table.tHead.rows[0].cells].entries()) {
    if (number === at) head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

function keepOnly(table, text) {
  for (const row of table.tBodies[0].rows) {
    row.hidden = text !== "" && !row.textContent.toLowerCase().includes(text.toLowerCase());
  }
}

function toolsOf(table, id, text) {
  const tools = document.createElement("p");
  tools.className = "table-tools";
  const filter = document.createElement("input");
  filter.type = "search";
  filter.id = `rows-${id}`;
  filter.placeholder = WORDS.filterRows;
  filter.setAttribute("aria-label", WORDS.filterRows);
  filter.value = text;
  filter.addEventListener("input", () => {
    keepOnly(table, filter.value);
    remember(`filter-${id}`, filter.value);
  });
  tools.append(filter);
  for (const kind of ["csv", "json"]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet small";
    button.textContent = WORDS[kind];
    button.addEventListener("click", () => save(table, id, kind));
    tools.append(button);
  }
  return tools;
}

function equip(table, id) {
  const asked = new URLSearchParams(location.search);
  for (const [at, head] of [...table.tHead.rows[0].cells].entries()) {
    if (!head.textContent.trim() || isPlain(head)) continue;
    const button = document.createElement("button");
    button.className = "sort";
    button.type = "button";
    button.id = `sort-${id}-${at}`;
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const isDown = head.getAttribute("aria-sort") === "ascending";
      sortBy(table, at, isDown);
      remember(`sort-${id}`, `${at}${isDown ? "-down" : ""}`);
    });
  }
  (table.closest(".scroll") || table).before(toolsOf(table, id, asked.get(`filter-${id}`) || ""));
  const [at, down] = (asked.get(`sort-${id}`) || "").split("-");
  if (at !== "" && table.tHead.rows[0].cells[Number(at)]) sortBy(table, Number(at), down === "down");
  keepOnly(table, asked.get(`filter-${id}`) || "");
}

// On a narrow screen each row is a card, and each cell says what it is.
function label(table) {
  const names = [...table.tHead.rows[0].cells].map((head) => head.textContent.trim());
  for (const row of table.tBodies[0].rows) {
    for (const [at, cell] of [...row.cells].entries()) cell.dataset.label = names[at] || "";
  }
}

function equipTables(root) {
  for (const table of root.querySelectorAll("table:not([data-equipped])")) {
    if (!table.tHead || !table.tBodies.length) continue;
    label(table);
    table.classList.add("cards-when-narrow");
    if (table.tBodies[0].rows.length < 2) continue;
    const place = table.closest("[id]")?.id || "table";
    const among = [...document.querySelectorAll(`#${CSS.escape(place)} table`)];
    const id = among.indexOf(table) > 0 ? `${place}-${among.indexOf(table)}` : place;
    table.setAttribute("data-equipped", "");
    equip(table, id);
  }
}

equipTables(document);
