"use strict";
// Shows a film: see viewer.rs for what is in one. Everything from the film gets into the page as text, never as markup.

const ROW = 24;
const SECTIONS = ["remainder", "doorway", "waiting", "critical", "exit"];
const KINDS = { read: "reads", write: "writes", update: "updates", choose: "chooses", begin: "begins to write", end: "ends its write of" };

const $ = (id) => document.getElementById(id);

/** An element with these attributes and children. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Says what is wrong, instead of showing half a trace. */
function complain(text) {
  $("message").textContent = text;
  $("message").hidden = false;
  $("main").hidden = true;
  document.querySelector("footer").hidden = true;
}

class Damaged extends Error {}

/** Throws unless this is a film whose parts fit together. */
function examine(film) {
  const must = (holds, what) => {
    if (!holds) throw new Damaged(what);
  };
  const whole = (number, below) => Number.isInteger(number) && number >= 0 && number < below;
  const is = (value, type) => value !== null && typeof value === type;
  must(is(film, "object") && film.format === "doorway-film", "it is something else");
  must(film.version === 1, `it has version ${film.version}, and this page reads version 1`);
  const { trace, frames, registers, pseudocode, crashes } = film;
  must(is(trace, "object") && is(trace.algorithm, "string"), "it names no algorithm");
  must(whole(trace.n, 4097) && trace.n > 0, "it has no number of processes");
  for (const [list, name] of [[trace.steps, "steps"], [frames, "frames"], [registers, "registers"],
    [pseudocode, "pseudocode"], [crashes, "crashes"], [trace.crashed, "crashed"]]) {
    must(Array.isArray(list), `it has no list of ${name}`);
  }
  must(frames.length === trace.steps.length, `it has ${trace.steps.length} steps and ${frames.length} frames`);
  registers.forEach((register, r) => {
    must(is(register, "object") && is(register.name, "string") && is(register.init, "string"), `register ${r} has no name`);
  });
  pseudocode.forEach((row) => must(is(row, "object") && Array.isArray(row.lines) && is(row.text, "string"), "its pseudocode is none"));
  trace.steps.forEach((step, i) => {
    const frame = frames[i];
    must(is(step, "object") && is(frame, "object"), `step ${i + 1} is none`);
    must(whole(step.process, trace.n), `step ${i + 1} is by nobody`);
    must(SECTIONS.includes(step.region), `step ${i + 1} leads nowhere`);
    must(is(step.access, "string") && Number.isInteger(step.line), `step ${i + 1} does nothing`);
    must(frame.register === null || whole(frame.register, registers.length), `step ${i + 1} is at no register`);
    must(frame.value === null || is(frame.value, "string"), `step ${i + 1} writes no value`);
  });
  crashes.forEach((crash) => must(is(crash, "object") && whole(crash.process, trace.n) && Number.isInteger(crash.after), "nobody crashes"));
  must(trace.loop_from === null || whole(trace.loop_from, trace.steps.length + 1), "its loop begins nowhere");
  return film;
}

/** What the page knows of a film: all that is shown at a step can be looked up. */
class Run {
  constructor(film) {
    this.film = film;
    const { trace, frames, registers } = film;
    this.trace = trace;
    this.steps = trace.steps;
    this.length = this.steps.length;
    // All lanes, unless there are too many: then those of processes that move.
    const movers = [...new Set(this.steps.map((step) => step.process))].sort((a, b) => a - b);
    this.lanes = trace.n <= 16 ? [...Array(trace.n).keys()] : movers;
    this.lane = new Map(this.lanes.map((p, i) => [p, i]));
    // Where everybody is after each number of steps, one byte each.
    const width = this.lanes.length;
    this.sections = new Uint8Array((this.length + 1) * width);
    // What each register holds from which number of steps on.
    this.held = registers.map((register) => ({ since: [0], values: [register.init] }));
    this.steps.forEach((step, i) => {
      this.sections.copyWithin((i + 1) * width, i * width, (i + 1) * width);
      this.sections[(i + 1) * width + this.lane.get(step.process)] = SECTIONS.indexOf(step.region);
      const { register, value } = frames[i];
      if (register !== null && value !== null) {
        this.held[register].since.push(i + 1);
        this.held[register].values.push(value);
      }
    });
    this.crashed = new Map(film.crashes.map((crash) => [crash.process, crash.after]));
  }

  section(lane, at) {
    return SECTIONS[this.sections[at * this.lanes.length + lane]];
  }

  /** What a register holds after so many steps, and since when. */
  value(register, at) {
    const { since, values } = this.held[register];
    let [low, high] = [0, since.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (since[middle] <= at) low = middle;
      else high = middle;
    }
    return { value: values[low], since: since[low] };
  }

  /** Each process after so many steps: its next line, its session, its references. */
  processes(at) {
    const all = new Map(this.lanes.map((p) => [p, { next: null, session: 0, cc: 0, dsm: 0, passages: 0 }]));
    for (let i = 0; i < at; i++) {
      const process = all.get(this.steps[i].process);
      const frame = this.film.frames[i];
      process.next = frame.next;
      process.session = this.steps[i].region === "remainder" ? 0 : frame.session;
      process.cc += frame.cc;
      process.dsm += frame.dsm;
      process.passages += this.steps[i].region === "remainder" ? 1 : 0;
    }
    return all;
  }

  /** What is wrong with a step, in words. */
  violation(i) {
    const names = new Set(this.film.frames[i].violates ?? []);
    if (i === this.length - 1 && this.trace.property && this.trace.loop_from === null) names.add(this.trace.property);
    return [...names].join(", ");
  }
}

let run;
let at = 0;

/** Goes to where so many steps have been made. */
function goto(step) {
  at = Math.max(0, Math.min(run.length, step));
  $("slider").value = at;
  $("position").textContent = `step ${at} of ${run.length}`;
  for (const id of ["first", "back"]) $(id).disabled = at === 0;
  for (const id of ["last", "forward"]) $(id).disabled = at === run.length;
  showNow();
  showProcesses();
  showCode();
  showRegisters();
  keepInSight();
  showRows();
  document.dispatchEvent(new Event("moved"));
}

function chip(text, section) {
  return make("span", { class: "chip", "data-section": section }, text);
}

function link(text, step) {
  return make("button", { type: "button", class: "link", onclick: () => goto(step) }, text);
}

function showNow() {
  const now = $("now");
  if (at === 0) {
    const asks = run.length ? "Everybody is in its remainder. → makes the first step." : "Everybody is in its remainder.";
    now.replaceChildren(make("div", { class: "what" }, "The start"), make("div", { class: "more" }, asks));
    return;
  }
  const [step, frame] = [run.steps[at - 1], run.film.frames[at - 1]];
  const what = make("div", { class: "what" }, `process ${step.process}, line ${step.line}: ${step.access}`);
  const more = make("div", { class: "more" }, `${KINDS[frame.kind] ?? frame.kind}, then in `, chip(step.region, step.region));
  const references = [frame.cc ? "CC" : null, frame.dsm ? "DSM" : null].filter(Boolean);
  more.append(references.length ? ` · remote in ${references.join(" and ")}` : frame.register === null ? "" : " · no remote reference");
  if (frame.kind === "read" && step.garbage === undefined) {
    const { since } = run.value(frame.register, at - 1);
    if (since > 0) more.append(" · as ", link(`process ${run.steps[since - 1].process} left it in step ${since}`, since));
    else more.append(" · as it was at the start");
  }
  now.replaceChildren(what, more);
  const violation = run.violation(at - 1);
  if (violation) now.append(make("div", { class: "bad" }, `${violation} is violated here.`));
  const loop = run.trace.loop_from;
  if (loop !== null && at === run.length) {
    now.append(make("div", { class: "bad" }, "From here it goes on ", link(`from step ${loop + 1}`, loop + 1), ", again and again."));
  }
}

function showProcesses() {
  const mover = at > 0 ? run.steps[at - 1].process : null;
  const sessions = run.trace.sessions > 0;
  const head = ["process", "section", ...(sessions ? ["session"] : []), "next line", "passages", "RMR in CC", "in DSM"];
  const rows = [make("tr", {}, ...head.map((text) => make("th", {}, text)))];
  for (const [p, process] of run.processes(at)) {
    const section = run.section(run.lane.get(p), at);
    const dead = run.crashed.has(p) && run.crashed.get(p) <= at;
    const where = make("td", {}, chip(section, section), dead ? " ✕ crashed" : "");
    const next = dead || section === "remainder" ? "–" : process.next;
    const rest = [...(sessions ? [process.session || "–"] : []), next, process.passages, process.cc, process.dsm];
    rows.push(make("tr", { class: p === mover ? "mover" : null, "data-process": p }, make("td", {}, String(p)), where,
      ...rest.map((cell) => make("td", {}, String(cell)))));
  }
  $("lanes").replaceChildren(...rows);
}

/** The pseudocode, and lines that are executed and not in it. */
function prepareCode() {
  const rows = run.film.pseudocode.map((row) => ({ ...row }));
  const listed = new Set(rows.flatMap((row) => row.lines));
  const others = new Map();
  run.steps.forEach((step, i) => {
    if (listed.has(step.line)) return;
    const { kind, register } = run.film.frames[i];
    const name = register === null ? "" : run.film.registers[register].name.replace(/\[.*/, "[…]");
    if (!others.has(step.line)) others.set(step.line, new Set());
    others.get(step.line).add(`${KINDS[kind] ?? kind} ${name}`.trim());
  });
  for (const [line, accesses] of [...others].sort(([a], [b]) => a - b)) {
    rows.push({ margin: String(line), lines: [line], text: `${[...accesses].join(", ")}    (seen in this run)` });
  }
  run.listing = rows;
  // A critical section that stands in the listing is where those inside are.
  run.inside = rows.findIndex((row) => row.text.trim() === "critical section");
  const margin = Math.max(2, ...rows.map((row) => row.margin.length));
  $("listing").style.setProperty("--margin", `${margin + 2}ch`);
  run.codeRows = rows.map((row) => make("div", { "data-line": row.margin || null },
    make("span", { class: "margin" }, row.margin), make("span", { class: "text" }, row.text || " "), make("span", { class: "here" })));
  $("listing").replaceChildren(...run.codeRows);
  $("code").hidden = rows.length === 0;
}

function showCode() {
  const here = run.listing.map(() => []);
  for (const [p, process] of run.processes(at)) {
    const section = run.section(run.lane.get(p), at);
    if (section === "remainder") continue;
    const row = section === "critical" && run.inside >= 0 ? run.inside : run.listing.findIndex(({ lines }) => lines.includes(process.next));
    if (row >= 0) here[row].push(chip(String(p), section));
  }
  const executed = at > 0 ? run.steps[at - 1].line : null;
  run.codeRows.forEach((row, i) => {
    row.classList.toggle("executed", run.listing[i].lines.includes(executed));
    row.lastChild.replaceChildren(...here[i]);
  });
}

function prepareRegisters() {
  const groups = new Map();
  run.registers = run.film.registers.map((register, r) => {
    const value = make("span", { class: "value" });
    const home = register.home === null ? "in nobody's memory" : `in the memory of process ${register.home}`;
    const element = make("div", { class: "register", title: home, "data-register": register.name },
      make("span", { class: "name" }, register.name), value);
    const name = register.name.replace(/\[.*/, "");
    if (!groups.has(name)) groups.set(name, { elements: [], longest: 0 });
    const group = groups.get(name);
    group.elements.push(element);
    group.longest = run.held[r].values.reduce((longest, text) => Math.max(longest, text.length), group.longest);
    return { element, value };
  });
  const all = [...groups.values()].map(({ elements, longest }) =>
    make("div", { class: "group", style: longest > 10 ? "--cell: min(15rem, 100%)" : null }, ...elements));
  const left = run.film.left_out;
  if (left > 0) all.push(make("p", { class: "more" }, `and ${left} more, which nobody touches`));
  $("registers").replaceChildren(...all);
}

function showRegisters() {
  const touched = at > 0 ? run.film.frames[at - 1].register : null;
  run.registers.forEach(({ element, value }, r) => {
    const now = run.value(r, at);
    if (value.textContent !== now.value) value.textContent = now.value;
    element.classList.toggle("touched", r === touched);
    element.classList.toggle("changed", at > 0 && now.since === at);
  });
}

function prepareDiagram() {
  $("diagram").style.setProperty("--lanes", run.lanes.length);
  $("diagram").classList.toggle("many", run.lanes.length > 6);
  const cell = (text, title) => make("span", { title: title ?? null }, text);
  $("head").replaceChildren(cell("step"), ...run.lanes.map((p) => cell(`p${p}`, `process ${p}`)),
    make("span", { class: "wide" }, "access"), cell("CC", "remote with coherent caches"), cell("DSM", "remote with distributed shared memory"));
  $("rows").style.height = `${(run.length + 1) * ROW}px`;
  $("legend").replaceChildren(...SECTIONS.map((section) => make("li", {}, make("i", { "data-section": section }), section)),
    make("li", {}, make("i", { class: "bare" }, "●"), "remote reference"),
    make("li", {}, "a number in a lane: the process moves, at that line"));
}

function row(i) {
  const step = i > 0 ? run.steps[i - 1] : null;
  const violation = step && run.violation(i - 1);
  const loop = run.trace.loop_from;
  const classes = ["step", i === at && "current", i > at && "later", loop !== null && i > loop && "loop", violation && "violation"];
  const element = make("div", { class: classes.filter(Boolean).join(" "), "data-step": i, style: `top: ${i * ROW}px`, title: step ? step.access : null });
  element.append(make("span", { class: "number" }, (loop !== null && i === loop + 1 ? "↻ " : violation ? "✗ " : "") + i));
  run.lanes.forEach((p, lane) => {
    const moves = step?.process === p;
    const after = run.crashed.get(p);
    const crashed = after !== undefined && i > after;
    const text = moves ? make("span", {}, String(step.line)) : crashed && i === after + 1 ? make("span", { class: "cross" }, "✕") : null;
    const kinds = ["lane", moves && "moves", crashed && "crashed"];
    element.append(make("span", { class: kinds.filter(Boolean).join(" "), "data-section": run.section(lane, i) }, text));
  });
  const frame = step && run.film.frames[i - 1];
  const cost = (model) => make("span", { class: frame?.[model] ? "cost lit" : "cost" }, frame && frame.register !== null ? (frame[model] ? "●" : "·") : "");
  element.append(make("span", { class: "access" }, step ? step.access : "the start"), cost("cc"), cost("dsm"));
  return element;
}

/** The rows that are there, by their steps, in order. */
let drawn = new Map();

/** Draws the rows in sight, or all of them on paper. Where nothing but the place has changed, those that are there may stay. */
function showRows({ all = false, keep = false } = {}) {
  const scroll = $("scroll");
  const first = all ? 0 : Math.max(0, Math.floor(scroll.scrollTop / ROW) - 10);
  const last = all ? run.length : Math.min(run.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / ROW) + 10);
  const rows = new Map();
  for (let i = first; i <= last; i++) rows.set(i, (keep && drawn.get(i)) || row(i));
  if (keep) {
    const [top] = drawn.keys();
    const fresh = [...rows].filter(([i]) => !drawn.has(i));
    for (const [i, element] of drawn) if (!rows.has(i)) element.remove();
    $("rows").prepend(...fresh.filter(([i]) => i < top).map(([, element]) => element));
    $("rows").append(...fresh.filter(([i]) => i > top).map(([, element]) => element));
  } else {
    $("rows").replaceChildren(...rows.values());
  }
  drawn = rows;
}

function keepInSight() {
  const scroll = $("scroll");
  const [top, head] = [at * ROW, $("head").offsetHeight];
  if (top < scroll.scrollTop + ROW) scroll.scrollTop = top - ROW;
  else if (top + head + 2 * ROW > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + head + 2 * ROW - scroll.clientHeight;
}

function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** The trace, for `lab replay`. */
function traceText() {
  // ∞ is the largest word there is, which numbers here are not made for.
  return JSON.stringify(run.trace, null, 2).replace(/("garbage": )18446744073709552000\b/g, "$118446744073709551615") + "\n";
}

/** The schedule, for `--script`; nothing if scripts have no words for it. */
function scriptText() {
  const lines = run.steps.map(({ process, choice, garbage }) => {
    if (garbage !== undefined) return `${process} reads ${garbage > Number.MAX_SAFE_INTEGER ? "∞" : garbage}`;
    const [what, number] = (choice ?? "").split(" ");
    return { "": `${process}`, session: `${process} asks ${number}`, outcome: `${process} chooses ${number}` }[what];
  });
  if (lines.includes(undefined)) return null;
  if (run.trace.loop_from !== null) lines.splice(run.trace.loop_from, 0, "again");
  return lines.join("\n") + "\n";
}

/** Shows another film in the same page, after so many steps. */
function show(film, step) {
  run = new Run(film);
  const { trace } = film;
  $("title").textContent = trace.algorithm + (trace.mutant ? `, mutant ${trace.mutant}` : "");
  const size = [`n = ${trace.n}`, trace.sessions > 0 ? `${trace.sessions} sessions` : `k = ${trace.k}`];
  const kind = trace.timestamps ? [`${trace.timestamps} timestamps`] : [];
  $("about").textContent = `${film.paper}, ${film.figure}: ${[...size, ...kind, `${trace.registers} registers`].join(", ")}, ${run.length} steps`;
  $("shows").hidden = !trace.property;
  $("shows").textContent = trace.property ? `${trace.property} is violated: ${trace.shows}.` : "";
  $("slider").max = run.length;
  $("main").hidden = false;
  $("script").hidden = scriptText() === null;
  prepareCode();
  prepareRegisters();
  prepareDiagram();
  goto(step);
}

function listen() {
  const moves = { first: () => 0, back: () => at - 1, forward: () => at + 1, last: () => run.length };
  for (const [id, to] of Object.entries(moves)) $(id).addEventListener("click", () => goto(to()));
  $("slider").addEventListener("input", () => goto(Number($("slider").value)));
  $("rows").addEventListener("click", (event) => {
    const row = event.target.closest(".step");
    if (row) goto(Number(row.dataset.step));
  });
  let drawing = false;
  $("scroll").addEventListener("scroll", () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      showRows({ keep: true });
    });
  });
  addEventListener("resize", () => showRows());
  addEventListener("beforeprint", () => showRows({ all: true }));
  addEventListener("afterprint", () => showRows());
  const keys = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  document.addEventListener("keydown", (event) => {
    const busy = event.target.closest?.("input, select, textarea");
    if (!(event.key in keys) || busy || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    goto(at + keys[event.key]);
  });
  $("save").addEventListener("click", () => save(`${run.trace.algorithm}.json`, traceText(), "application/json"));
  $("script").addEventListener("click", () => save(`${run.trace.algorithm}.script`, scriptText(), "text/plain"));
}

function start() {
  let film;
  try {
    film = JSON.parse($("film").textContent);
  } catch (error) {
    complain(`This page is damaged: what it should show cannot be read (${error.message}). Make it again with doorway lab replay FILE --html OUT.`);
    return;
  }
  try {
    show(examine(film), film.trace.property ? film.trace.steps.length : 0);
    listen();
  } catch (error) {
    const what = error instanceof Damaged ? error.message : `it cannot be drawn: ${error.message}`;
    complain(`This page does not hold a film of a trace: ${what}. Make it again with doorway lab replay FILE --html OUT.`);
  }
}

start();
