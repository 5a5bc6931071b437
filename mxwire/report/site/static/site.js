// Behaviour of all pages: filter the matrix, show the fields of a frame, copy commands, and start the graphs.
"use strict";

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

function element(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Data is packed: JSON, deflated, in base64.
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// The matrix: show matching cells, and the rows, groups and columns that contain any.

function startFilters(form) {
  const table = find("table.matrix");
  const columns = all("thead th[data-left]", table);
  const rows = all("tbody tr:not(.group)", table).map((row) => ({
    row,
    group: row.parentElement.dataset.group,
    cells: [...row.cells].slice(2).map((place) => ({ place, link: place.firstElementChild })),
  }));
  const total = all("td > a", table).length;
  let typing = false;

  function apply() {
    const wanted = Object.fromEntries(new FormData(form));
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    const used = columns.map(() => false);
    const takes = columns.map(
      ({ dataset }) =>
        (!wanted.left || dataset.left === wanted.left) && (!wanted.right || dataset.right === wanted.right),
    );
    let shown = 0;
    for (const { row, group, cells } of rows) {
      const here =
        (!wanted.group || group === wanted.group) &&
        (!wanted.impairment || row.dataset.impairment === wanted.impairment);
      let some = false;
      cells.forEach(({ link }, place) => {
        if (!link) return;
        const searched = words.length ? `${row.dataset.text} ${link.title} ${link.textContent}`.toLowerCase() : "";
        const visible =
          here &&
          takes[place] &&
          (!wanted.verdict || link.classList.contains(wanted.verdict)) &&
          (!wanted.state || link.classList.contains(wanted.state)) &&
          words.every((word) => searched.includes(word));
        link.hidden = !visible;
        if (visible) {
          some = used[place] = true;
          shown += 1;
        }
      });
      row.hidden = !some;
    }
    columns.forEach((column, place) => (column.hidden = !used[place]));
    for (const { cells } of rows) cells.forEach(({ place }, number) => (place.hidden = !used[number]));
    for (const body of all("tbody", table)) body.hidden = !find("tr:not(.group):not([hidden])", body);
    find("#shown").value = shown === total ? `${total} cells` : `${shown} of ${total} cells`;
    find("#nothing").hidden = shown > 0;
  }

  // A choice is an entry of the history; letters typed one after the other are a single one.
  function remember(typed = false) {
    const set = [...new FormData(form)].filter(([, value]) => value);
    const mark = set.length ? `#${new URLSearchParams(set)}` : "#matrix";
    if (mark === location.hash) return;
    if (typed && typing) history.replaceState(null, "", mark);
    else history.pushState(null, "", mark);
    typing = typed;
  }

  function choose(text) {
    form.reset();
    for (const [name, value] of new URLSearchParams(text)) {
      const field = form.elements.namedItem(name);
      if (field) field.value = value;
    }
    apply();
  }

  form.hidden = false;
  form.addEventListener("input", (event) => (apply(), remember(event.target.name === "text")));
  form.addEventListener("submit", (event) => event.preventDefault());
  find("#everything").addEventListener("click", () => (choose(""), remember()));
  for (const link of all("[data-filter]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      choose(link.dataset.filter);
      remember();
      find("#matrix").scrollIntoView();
    });
  }
  const follow = () => {
    typing = false;
    if (location.hash.includes("=")) choose(location.hash.slice(1));
    // Start with the pairs of one implementation if there are many; "#matrix" is the address of all.
    else choose(location.hash === "#matrix" ? "" : (form.dataset.first ?? ""));
  };
  addEventListener("popstate", follow);
  follow();
}

// A frame: its row of the table of frames, and its decoded fields.

// `noted` is called with the number of each frame that is shown.
async function startFrames(detail, noted) {
  const { texts, frames: records } = await unpack(find("#records").textContent);
  const numbers = Object.keys(records).map(Number).sort((one, two) => one - two);
  const steps = all(".ladder .step");
  const numberOf = (link) => Number(link.getAttribute("href").slice(2));
  let chosen = null;

  function stepOf(number) {
    return steps.find((step) => numberOf(step) <= number && number <= Number(step.dataset.last ?? numberOf(step)));
  }

  function button(text, label, act) {
    const made = element("button", text);
    made.type = "button";
    made.setAttribute("aria-label", label);
    made.disabled = !act;
    if (act) made.addEventListener("click", act);
    return made;
  }

  function fieldRow(offset, size, name, text, hex, meaning, defined) {
    const row = element("tr", "", defined ? "" : "undefined");
    row.append(element("td", String(offset), "number"));
    const what = element("th", name);
    what.scope = "row";
    const value = element("td", text);
    const shown = hex.slice(0, 32).replace(/(....)(?=.)/g, "$1 ");
    value.append(element("span", shown + (hex.length / 2 < size ? " …" : ""), "bytes mono"));
    if (meaning) value.append(element("span", meaning, "meaning"));
    row.append(what, value);
    return row;
  }

  function fieldTable([layout, hex, places, rest]) {
    const table = element("table");
    const caption = element("caption", "Fields: offset, name, value, bytes, meaning", "hidden");
    const body = element("tbody");
    let at = 0;
    mxwireLayouts[layout].forEach(([offset, size, name, meaning, defined], place) => {
      body.append(fieldRow(offset, size, name, texts[places[place]], hex.slice(at, at + 2 * size), meaning, defined));
      at += 2 * size;
    });
    for (const [offset, size, name, text, bytes, meaning] of rest) {
      body.append(fieldRow(offset, size, name, text, bytes, texts[meaning], true));
    }
    table.append(caption, body);
    return table;
  }

  function show(number, moved = false) {
    const step = stepOf(number);
    if (!records[number] && step) number = numberOf(step); // within a run of similar frames
    const row = document.getElementById(`f${number}`);
    if (!row || !records[number]) return;
    noted(number);
    if (chosen) chosen.classList.remove("chosen");
    chosen = step;
    if (moved && chosen) chosen.scrollIntoView({ block: "center" });
    if (chosen) chosen.classList.add("chosen");
    const [, time, path, endpoints, type, text] = [...row.cells].map((each) => each.firstChild?.textContent ?? "");
    const place = numbers.indexOf(number);
    const bar = element("div", "", "bar");
    const buttons = element("span");
    const go = (to) => to !== undefined && (() => (show(to), find(`[data-go="${to > number ? 1 : -1}"]`).focus()));
    const back = button("‹", "Previous frame", go(numbers[place - 1]));
    const on = button("›", "Next frame", go(numbers[place + 1]));
    back.dataset.go = -1;
    on.dataset.go = 1;
    buttons.append(back, " ", on, " ", button("×", "Close", close));
    bar.append(element("h3", `${number} ${type}`), buttons);
    detail.replaceChildren(bar, element("p", `${time} ms, ${path}${endpoints ? `, endpoints ${endpoints}` : ""}`, "muted"));
    detail.append(element("p", text));
    for (const remark of all("em", row)) detail.append(element("p", remark.textContent, "remark"));
    detail.append(fieldTable(records[number]));
    detail.hidden = false;
    detail.scrollTop = 0;
  }

  function close() {
    detail.hidden = true;
    if (chosen) chosen.focus();
  }

  for (const link of all('a[href^="#f"]').filter((each) => records[numberOf(each)])) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      show(numberOf(link));
      const step = stepOf(numberOf(link));
      if (step && !step.contains(link)) step.scrollIntoView({ block: "center" });
    });
  }
  steps.forEach((step, place) =>
    step.addEventListener("keydown", (event) => {
      const to = { ArrowDown: steps[place + 1], ArrowUp: steps[place - 1] }[event.key];
      if (!to) return;
      event.preventDefault();
      to.focus();
      if (!detail.hidden) show(numberOf(to));
    }),
  );
  detail.closest(".exchange").addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !detail.hidden) close();
  });
  return { show };
}

// The frames of a page that shows all of them: the chosen one is part of the address.
async function startExchange(detail) {
  const started = await startFrames(detail, (number) => {
    if (!/^#m\d+/.test(location.hash)) history.replaceState(null, "", `#f${number}`);
  });
  const follow = () => {
    const asked = /^#f(\d+)$/.exec(location.hash);
    if (asked) started.show(Number(asked[1]), true);
  };
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  follow();
  return started;
}

function startCopying(button) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected: press Ctrl-C to copy";
    }
  });
}

if (find("#filters")) startFilters(find("#filters"));
const mxwireFrames = find("#detail") ? startExchange(find("#detail")) : null;
all("[data-copy]").forEach(startCopying);
if (typeof startPage === "function") startPage();
