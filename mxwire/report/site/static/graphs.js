// Graphs over time and the table of messages.
"use strict";

// Data: a file of the report calls one of these two functions.

const mxwireFiles = {};
let mxwirePage = null;
const mxwireData = (text) => (mxwirePage = text);
const mxwireFile = (number, text) => mxwireFiles[number](text);

function loadScript(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error(`${address} cannot be read`)));
    document.head.append(script);
  });
}

async function loadFile(number) {
  let packed;
  mxwireFiles[number] = (text) => (packed = text);
  await loadScript(`data/${number}.js`);
  return unpack(packed);
}

// Graphs, drawn by Bokeh, which is loaded when the first is drawn: it takes longer to start than the rest of the page.

const assets = document.currentScript.src;
let bokeh = null;
const loadBokeh = () => (bokeh ??= loadScript(new URL("bokeh.js", assets)));

const LEGEND_ROW = 22; // Pixels between the rows of a legend.
const HEIGHTS = { throughput: 210, sequence: 380 };
const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const sums = (steps, first = 0) => steps.map(((total) => (each) => (total += each))(first));
const seconds = (ns) => ns.map((each) => each / 1e9);
const readable = (value) => value.toLocaleString("en");

// A title in lines that are no wider than the page, which a canvas would cut.
function linesOf(title) {
  const longest = Math.max(20, Math.floor((innerWidth - 110) / 6.9));
  const lines = [""];
  for (const word of title.split(" ")) {
    const longer = lines[lines.length - 1] + (lines[lines.length - 1] && " ") + word;
    if (longer.length > longest && lines[lines.length - 1]) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

function figure(title, options) {
  const lines = linesOf(title);
  const made = Bokeh.Plotting.figure({
    title: lines.join("\n"),
    sizing_mode: "stretch_width",
    height: 300,
    tools: [],
    background_fill_color: colour("--back"),
    border_fill_color: colour("--back"),
    outline_line_color: colour("--line"),
    ...options,
  });
  made.height += 16 * (lines.length - 1);
  const [pan, wheel] = [new Bokeh.PanTool(), new Bokeh.WheelZoomTool({ dimensions: "width" })];
  made.add_tools(pan, wheel, new Bokeh.BoxZoomTool(), new Bokeh.ResetTool(), new Bokeh.SaveTool());
  made.toolbar.active_drag = pan;
  // A page must scroll with the wheel until someone works with the graph.
  made.toolbar.active_scroll = null;
  made.toolbar.logo = null;
  Object.assign(made.title, { text_color: colour("--muted"), text_font_size: "12px", text_font_style: "normal" });
  for (const axis of [...made.xaxis, ...made.yaxis]) {
    Object.assign(axis, {
      axis_label_text_color: colour("--muted"),
      axis_label_text_font_style: "normal",
      axis_label_text_font_size: "12px",
      major_label_text_color: colour("--text"),
      axis_line_color: colour("--line"),
      major_tick_line_color: colour("--line"),
      minor_tick_line_color: null,
    });
  }
  for (const grid of [...made.xgrid, ...made.ygrid]) grid.grid_line_color = colour("--line");
  return made;
}

function addLegend(made, entries) {
  if (!entries.length) return;
  const longest = Math.max(...entries.map(([label]) => label.length));
  const ncols = Math.max(1, Math.floor((innerWidth - 90) / (6.3 * longest + 34)));
  // The legend must not take the room of the curves, which are narrow enough on a phone.
  made.height += LEGEND_ROW * (Math.ceil(entries.length / ncols) - 1);
  const legend = new Bokeh.Legend({
    items: entries.map(([label, renderers]) => new Bokeh.LegendItem({ label: { value: label }, renderers })),
    orientation: "horizontal",
    click_policy: "hide",
    ncols,
    glyph_width: 16,
    glyph_height: LEGEND_ROW - 6,
    label_standoff: 4,
    label_text_font_size: "11px",
    label_text_color: colour("--text"),
    background_fill_color: null,
    border_line_color: null,
    padding: 0,
    margin: 2,
    spacing: 6,
  });
  legend.location = "left";
  made.add_layout(legend, "above");
}

const format = (value) => new Bokeh.NumeralTickFormatter({ format: value });

function throughputFigure({ start, width, labels, bytes }, options) {
  const made = figure("Throughput", { height: HEIGHTS.throughput, ...options });
  made.yaxis.axis_label = "MB/s on the wire";
  made.xaxis.axis_label = "seconds";
  made.yaxis.formatter = format("0.[000]a");
  const entries = labels.map((label, place) => {
    const left = bytes[place].map((_, step) => (start + step * width) / 1e9);
    const rate = bytes[place].map((each) => (each / width) * 1e3);
    const source = new Bokeh.ColumnDataSource({ data: { x: left, y: rate, host: left.map(() => label) } });
    const tone = colour(`--series-${place % 8}`);
    const line = made.step({ field: "x" }, { field: "y" }, "after", { source, color: tone, line_width: 1.5 });
    return [label, [line]];
  });
  const tooltips = [["", "@host"], ["seconds", "@x{0.000000}"], ["MB/s", "@y{0.000}"]];
  made.add_tools(new Bokeh.HoverTool({ tooltips, mode: "mouse", line_policy: "prev" }));
  addLegend(made, entries);
  return made;
}

function decodePoints(data) {
  const start = sums(data.time, data.first);
  const low = sums(data.low);
  const frame = sums(data.frame);
  return {
    x0: seconds(start),
    x1: seconds(start.map((each, place) => each + data.duration[place])),
    y0: low,
    y1: low.map((each, place) => each + data.size[place]),
    kind: data.kind,
    frame,
    frames: data.frames,
    message: sums(data.message),
  };
}

const MARKERS = { 4: "diamond", 5: "triangle", 6: "triangle", 7: "inverted_triangle", 8: "square", 9: "x" };

// The figure of a time-sequence graph; `chosen(message, frame)` is called for a point that is clicked.
function sequenceFigure(data, options, chosen) {
  const made = figure(data.title, { height: HEIGHTS.sequence, ...options });
  made.yaxis.axis_label = "offset, bytes";
  made.xaxis.axis_label = "seconds";
  made.yaxis.formatter = format("0.[00] ib");
  made.yaxis.ticker = new Bokeh.AdaptiveTicker({ base: 1024, mantissas: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] });
  const points = decodePoints(data);
  const pick = (places) =>
    Object.fromEntries(Object.entries(points).map(([name, values]) => [name, places.map((each) => values[each])]));
  const entries = [];
  const last = Math.max(...points.x1, 0);
  for (const [name, dash] of [["window", "dashed"], ["acked", "solid"]]) {
    const [times, values] = data[name];
    if (!times.length) continue;
    const [label, light, onDark] = mxwireStyles.lines[name];
    const x = [...seconds(times), last];
    const source = new Bokeh.ColumnDataSource({ data: { x, y: [...values, values[values.length - 1]] } });
    const style = { color: dark.matches ? onDark : light, line_dash: dash, line_width: 1.2 };
    entries.push([label, [made.step({ field: "x" }, { field: "y" }, "after", { source, ...style })]]);
  }
  const clickable = [];
  mxwireStyles.kinds.forEach(([label, light, onDark], kind) => {
    const mine = points.kind.flatMap((each, place) => (each === kind ? [place] : []));
    if (!mine.length) return;
    const tone = dark.matches ? onDark : light;
    const wide = mine.filter((each) => points.y1[each] > points.y0[each]);
    const flat = mine.filter((each) => points.y1[each] <= points.y0[each]);
    const renderers = [];
    const places = (some) => new Bokeh.ColumnDataSource({ data: { ...pick(some), label: some.map(() => label) } });
    if (wide.length) {
      const source = places(wide);
      const ends = [{ field: "x0" }, { field: "y0" }, { field: "x1" }, { field: "y1" }];
      const width = kind === 3 ? 7 : kind === 5 ? 1.5 : 3;
      renderers.push(made.segment(...ends, { source, color: tone, line_width: width, line_cap: "butt" }));
    }
    if (flat.length) {
      const source = places(flat);
      const marker = MARKERS[kind] ?? "circle";
      renderers.push(made.scatter({ field: "x0" }, { field: "y0" }, { source, marker, size: 8, color: tone }));
    }
    entries.push([label, renderers]);
    clickable.push(...renderers);
  });
  for (const each of clickable) {
    each.nonselection_glyph = null;
    const { selected, data: columns } = each.data_source;
    selected.change.connect(() => {
      const [place] = selected.indices;
      if (place !== undefined) chosen(columns.message[place], columns.frame[place]);
    });
  }
  const tooltips = [
    ["", "@label, message @message"],
    ["seconds", "@x0{0.000000}"],
    ["bytes", "@y0{0,0} to @y1{0,0}"],
    ["frame", "@frame"],
  ];
  made.add_tools(
    new Bokeh.HoverTool({ tooltips, renderers: clickable }),
    new Bokeh.TapTool({ renderers: clickable }),
  );
  const cursor = new Bokeh.Span({ dimension: "height", line_color: colour("--focus"), line_width: 2, visible: false });
  made.add_layout(cursor);
  addLegend(made, entries);
  return { made, points, cursor };
}

// Figures with a common range must be in one document.
async function draw(box, figures) {
  Bokeh.logger.set_level("warn");
  box.ariaBusy = "true";
  box.replaceChildren();
  const view = await Bokeh.Plotting.show(new Bokeh.Column({ children: figures, sizing_mode: "stretch_width" }), box);
  box.figures = figures;
  box.ariaBusy = "false";
  return view;
}

function moveRange(range, zoom, shift) {
  const [middle, half] = [(range.start + range.end) / 2, (range.end - range.start) / 2];
  range.start = middle + shift * half - half * zoom;
  range.end = middle + shift * half + half * zoom;
}

// Keys and buttons for a group of figures with one range of times.
function steer(box, range, whole) {
  const acts = {
    "+": () => moveRange(range, 0.5, 0),
    "-": () => moveRange(range, 2, 0),
    0: () => ([range.start, range.end] = whole),
    ArrowLeft: () => moveRange(range, 1, -0.4),
    ArrowRight: () => moveRange(range, 1, 0.4),
  };
  acts["="] = acts["+"];
  box.onkeydown = (event) => {
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  return { in: acts["+"], out: acts["-"], all: acts[0] };
}

// The table of messages.

const HEADINGS = [
  ["number", "#"], ["start", "seconds"], ["source", "source"], ["destination", "destination"], ["kind", "kind"],
  ["length", "length"], ["match", "match"], ["frames", "frames"], ["took", "ms"], ["sender", "sender"],
  ["receiver", "receiver"], ["notes", "remarks"],
];
const NUMERIC = new Set(["number", "start", "length", "frames", "took"]);
const ROWS = 200;

function startMessages({ texts, columns }, open) {
  const [form, table, more] = [find("#message-filters"), find("#message-table"), find("#more-messages")];
  const section = form.closest("section");
  const count = columns.number.length;
  section.hidden = !count;
  if (!count) return null;
  const text = (name, place) => texts[columns[name][place]];
  const pairOf = (place) => [text("source", place), text("destination", place)].map((each) => each.replace(/ ep \S+$/, ""));
  const searched = (place) =>
    ["source", "destination", "kind", "match", "sender", "receiver", "notes"].map((each) => text(each, place)).join(" ");
  let [order, descending, shown, places, span, current] = ["number", false, ROWS, [], null, null];

  for (const name of ["kind", "sender"]) {
    for (const each of new Set(columns[name])) form.elements[name].append(new Option(texts[each]));
  }
  const pairs = new Set(columns.number.map((_, place) => pairOf(place).sort().join(" ")));
  for (const each of [...pairs].sort()) form.elements.pair.append(new Option(each.replace(" ", " and "), each));

  const head = element("tr");
  for (const [name, label] of HEADINGS) {
    const cell = element("th", "", NUMERIC.has(name) ? "number" : "");
    const button = element("button", label);
    cell.scope = "col";
    button.type = "button";
    button.addEventListener("click", () => {
      [order, descending] = [name, order === name ? !descending : false];
      refresh();
    });
    cell.dataset.name = name;
    cell.append(button);
    head.append(cell);
  }
  find("thead", table).append(head);

  function value(name, place) {
    const found = columns[name][place];
    return NUMERIC.has(name) ? (found ?? -1) : texts[found];
  }

  function cell(name, place) {
    const found = columns[name][place];
    if (name === "start") return (found / 1e6).toFixed(6);
    if (name === "took") return (found / 1e3).toFixed(3);
    if (NUMERIC.has(name)) return found === null ? "?" : readable(found);
    return texts[found];
  }

  function rowOf(place) {
    const row = element("tr", "", columns.notable[place] ? "notable" : "");
    for (const [name] of HEADINGS) {
      if (name === "number") {
        const link = element("a", String(columns.number[place]));
        link.href = `#m${columns.number[place]}`;
        const first = element("th", "", "number");
        first.scope = "row";
        first.append(link);
        row.append(first);
      } else {
        row.append(element("td", cell(name, place), NUMERIC.has(name) ? "number" : name === "notes" ? "text" : "nowrap"));
      }
    }
    row.dataset.number = columns.number[place];
    row.classList.toggle("chosen", columns.number[place] === current);
    row.addEventListener("click", (event) => {
      if (event.target.closest("a")) return;
      open(columns.number[place]);
    });
    return row;
  }

  function refresh() {
    const wanted = Object.fromEntries(new FormData(form));
    const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
    places = columns.number.flatMap((_, place) => {
      if (wanted.kind && text("kind", place) !== wanted.kind) return [];
      if (wanted.sender && text("sender", place) !== wanted.sender) return [];
      if (wanted.notable && !columns.notable[place]) return [];
      if (wanted.pair && pairOf(place).sort().join(" ") !== wanted.pair) return [];
      if (span && (columns.start[place] > span[1] * 1e6 || columns.start[place] + columns.took[place] < span[0] * 1e6)) return [];
      if (words.length) {
        const within = searched(place).toLowerCase();
        if (!words.every((word) => within.includes(word))) return [];
      }
      return [place];
    });
    const sign = descending ? -1 : 1;
    places.sort((one, two) => {
      const [a, b] = [value(order, one), value(order, two)];
      return (a < b ? -1 : a > b ? 1 : one - two) * sign;
    });
    shown = ROWS;
    show();
  }

  function show() {
    find("tbody", table).replaceChildren(...places.slice(0, shown).map(rowOf));
    for (const each of all("th", find("thead", table))) {
      const active = each.dataset.name === order;
      if (active) each.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else each.removeAttribute("aria-sort");
    }
    const total = `${readable(count)} message${count === 1 ? "" : "s"}`;
    find("#messages-shown").value = places.length === count ? total : `${readable(places.length)} of ${total}`;
    more.hidden = places.length <= shown;
  }

  more.addEventListener("click", () => ((shown += ROWS), show()));
  form.addEventListener("input", refresh);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(refresh));
  table.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = all("tbody a", table);
    const next = links[links.indexOf(document.activeElement) + step];
    if (!step || !links.includes(document.activeElement) || !next) return;
    event.preventDefault();
    next.focus();
  });
  refresh();
  return {
    columns,
    restrict(range) {
      span = range;
      refresh();
    },
    choosePair(hosts) {
      form.reset();
      form.elements.pair.value = hosts;
      refresh();
    },
    mark(number) {
      current = number;
      for (const row of all("tbody tr", table)) row.classList.toggle("chosen", Number(row.dataset.number) === number);
    },
    place: (number) => columns.number.indexOf(number),
  };
}

// A page: its graphs, its table, and the message that is shown.

const UNSEEN = 2000; // Milliseconds after which graphs that are out of view are drawn too, for printing.

async function startOverview(data) {
  const [section, box, choice] = [find(".over-time"), find("#graphs"), find("#conversation")];
  const part = find("#message");
  const { columns } = data.messages;
  let sequences = [];
  let buttons = {};
  let range = null;
  let chosenMessage = null;
  let seen = null; // The message on which the graphs have opened, or of which a point was clicked.

  const table = startMessages(data.messages, (number) => address(`#m${number}`));
  const address = (mark) => {
    if (location.hash === mark) return;
    history.pushState(null, "", mark);
    follow();
  };
  // A point of the graphs is clicked: they stay where they are.
  const addressOfPoint = (message, frame) => {
    seen = message;
    address(`#m${message}f${frame}`);
  };

  function whole() {
    const [{ start, width, bytes }] = [data.rates];
    const ends = [start / 1e9, (start + width * Math.max(bytes[0]?.length ?? 0, 1)) / 1e9];
    const [low, high] = [Math.min(0, ends[0]), ends[1]];
    return [low - (high - low) * 0.01, high + (high - low) * 0.01];
  }

  // A conversation starts with its own time; the button and the key show the whole capture.
  function spanOf(graphs) {
    const times = graphs.map(decodePoints).flatMap(({ x0, x1 }) => [Math.min(...x0), Math.max(...x1)]);
    const [low, high] = [Math.min(...times), Math.max(...times)];
    const edge = Math.max((high - low) * 0.02, 1e-6);
    return Number.isFinite(high - low) ? [low - edge, high + edge] : whole();
  }

  // The time of the chosen message, if it is one of the conversation that is shown; null without one.
  function spanOfMessage() {
    const place = chosenMessage === null || !table ? -1 : table.place(chosenMessage);
    if (place < 0 || String(columns.conversation[place]) !== choice.value) return null;
    const [low, took] = [columns.start[place] / 1e6, columns.took[place] / 1e6];
    const edge = Math.max(took * 0.05, 1e-5);
    return [low - edge, low + took + edge];
  }

  // Show the chosen message in the graphs: its conversation, and its time.
  function turnToMessage() {
    if (seen === chosenMessage) return;
    const conversation = String(columns.conversation[table?.place(chosenMessage) ?? -1]);
    const known = data.conversations.some((each) => String(each.number) === conversation);
    if (known && choice.value !== conversation) {
      choice.value = conversation;
      if (drawn) drawAgain();
      return;
    }
    const span = spanOfMessage();
    if (span && range) [range.start, range.end, seen] = [...span, chosenMessage];
  }

  async function drawConversation() {
    const found = data.conversations.find((each) => String(each.number) === choice.value);
    const [start, end] = spanOfMessage() ?? spanOf(found?.graphs ?? []);
    seen = chosenMessage;
    range = new Bokeh.Range1d({ start, end });
    sequences = (found?.graphs ?? []).map((each) => sequenceFigure(each, { x_range: range }, addressOfPoint));
    const figures = [throughputFigure(data.rates, { x_range: range }), ...sequences.map((each) => each.made)];
    await draw(box, figures);
    box.style.minHeight = "";
    buttons = steer(box, range, whole());
    let due = 0;
    range.change.connect(() => {
      clearTimeout(due);
      due = setTimeout(() => find("#in-view").checked && table?.restrict([range.start, range.end]), 60);
    });
    showCursor();
  }

  // One drawing after the other: two at once would both fill the box.
  let drawn = null;
  const drawAgain = () => (drawn = (drawn ?? loadBokeh()).then(drawConversation));
  const drawFirst = () => drawn ?? drawAgain();

  function showCursor(frame) {
    const place = chosenMessage === null || !table ? -1 : table.place(chosenMessage);
    for (const { points, cursor } of sequences) {
      let at = frame === undefined ? -1 : points.frame.indexOf(frame);
      if (at < 0) at = points.message.indexOf(chosenMessage);
      cursor.visible = at >= 0;
      if (at >= 0) cursor.location = points.x0[at];
      else if (place >= 0) [cursor.visible, cursor.location] = [true, columns.start[place] / 1e6];
    }
  }

  async function showMessage(number, frame) {
    const changed = chosenMessage !== number;
    chosenMessage = number;
    table?.mark(number);
    turnToMessage();
    showCursor(frame);
    if (!part) {
      const first = frame ?? columns.first[table?.place(number) ?? -1];
      if (first && frames) frames.show(first, true);
      return;
    }
    if (changed) {
      const file = data.files[number];
      if (file === undefined) {
        part.replaceChildren(
          element("h2", `Message ${number}`),
          element("p", `No ladder of this message is in the report: mxwire follow ${number} FILE draws it.`, "muted"),
        );
      } else {
        const fragments = await loadFile(file);
        if (chosenMessage !== number) return;
        part.innerHTML = fragments[number]; // made by mxwire, which escapes all text from the capture
        frames = await startFrames(find("#detail", part), (each) => {
          history.replaceState(null, "", `#m${number}f${each}`);
          showCursor(each);
          own?.cursorTo(each);
        });
      }
      part.hidden = false;
      await drawOwn();
    }
    if (frame !== undefined && frames) frames.show(frame, true);
    else part.scrollIntoView({ block: "start" });
  }

  let frames = null;
  let own = null;
  async function drawOwn() {
    const place = part && find(".graph", part);
    own = null;
    if (!place) return;
    await loadBokeh();
    if (!place.isConnected) return; // another message was chosen
    const graph = JSON.parse(find(".graph-data", part).textContent);
    const { made, points, cursor } = sequenceFigure(graph, { height: 330 }, (_, frame) => frames?.show(frame, true));
    const [low, high] = [Math.min(...points.x0), Math.max(...points.x1)];
    const edge = Math.max((high - low) * 0.03, 1e-6);
    const span = new Bokeh.Range1d({ start: low - edge, end: high + edge });
    made.x_range = span;
    await draw(place, [made]);
    steer(place, span, [low - edge, high + edge]);
    own = {
      cursorTo(frame) {
        const at = points.frame.findIndex((each, row) => each <= frame && frame < each + points.frames[row]);
        cursor.visible = at >= 0;
        if (at >= 0) cursor.location = points.x0[at];
      },
    };
  }

  function follow() {
    const mark = decodeURIComponent(location.hash);
    const found = /^#m(\d+)(?:f(\d+))?$/.exec(mark);
    const frame = /^#frame=(\d+)$/.exec(mark);
    if (found) showMessage(Number(found[1]), found[2] === undefined ? undefined : Number(found[2]));
    else if (frame) showFrame(Number(frame[1]));
    else if (mark.startsWith("#pair=")) {
      table?.choosePair(mark.slice(6).split(" ").sort().join(" "));
      find("#messages").scrollIntoView();
    } else if (part) {
      chosenMessage = null;
      part.hidden = true;
      table?.mark(null);
      showCursor();
    }
  }

  function showFrame(number) {
    const graph = data.conversations.flatMap((each) => each.graphs).map(decodePoints);
    for (const points of graph) {
      const at = points.frame.findIndex((each, row) => each <= number && number < each + points.frames[row]);
      if (at >= 0) return showMessage(points.message[at], number);
    }
    part.replaceChildren(
      element("h2", `Frame ${number}`),
      element("p", `This frame is in no ladder here: mxwire decode -v --frames ${number} FILE shows it.`, "muted"),
    );
    part.hidden = false;
    chosenMessage = null;
    part.scrollIntoView();
  }

  section.hidden = !data.rates.labels.length;
  for (const each of data.conversations) {
    const title = each.graphs[0]?.title.replace(/^.*?: /, "") ?? "";
    choice.append(new Option(`${each.number}: ${title}`, each.number));
  }
  choice.closest("label").hidden = data.conversations.length < 2;
  choice.addEventListener("change", drawAgain);
  find("#in-view").addEventListener("change", (event) => table?.restrict(event.target.checked && range ? [range.start, range.end] : null));
  for (const each of all("[data-zoom]")) each.addEventListener("click", () => buttons[each.dataset.zoom]?.());
  if (!section.hidden) {
    // What is below must stay where it is when they appear.
    box.style.minHeight = `${HEIGHTS.throughput + HEIGHTS.sequence * (data.conversations[0]?.graphs.length ?? 0)}px`;
    new IntersectionObserver((seen) => seen.some((each) => each.isIntersecting) && drawFirst()).observe(section);
    setTimeout(drawFirst, UNSEEN);
  }
  dark.addEventListener("change", () => {
    if (drawn) drawAgain();
    drawOwn();
  });
  addEventListener("popstate", follow);
  addEventListener("hashchange", follow);
  if (!part && find("#detail")) {
    frames = await mxwireFrames; // those of the page, which shows all frames
  }
  if (location.hash) follow();
  document.documentElement.dataset.ready = "true";
}

async function startPage() {
  const text = find("#page-data")?.textContent ?? mxwirePage;
  if (text !== null) await startOverview(await unpack(text));
}
