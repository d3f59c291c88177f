
// The explorer: the same page, alive. Each question carries the whole schedule, so that nobody has to remember anything.

/** What may be done where the page is, which need not be at the end. */
let live = run.film.live;
let question = 0;

async function ask(plan) {
  let answer;
  try {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch("/explore", { method: "POST", headers, body: JSON.stringify(plan) });
    answer = await response.json();
  } catch {
    throw new Error("The explorer has ended. Start it again with doorway lab explore; what is shown can still be saved.");
  }
  if (answer.error) throw new Error(answer.error);
  return examine(answer);
}

/** The schedule up to where the page is. */
function soFar() {
  const schedule = run.film.live.schedule;
  if (at === run.length) return schedule;
  let steps = 0;
  const end = schedule.findIndex((act) => !act.crashes && ++steps > at);
  // A crash after the last step that is shown has not happened yet.
  return schedule.slice(0, end).filter((act, i, kept) => !act.crashes || kept.slice(i).some((later) => !later.crashes));
}

/** Goes on from where the page is: what followed is forgotten. */
async function goOn(acts, scheduled) {
  const mine = ++question;
  try {
    const film = await ask({ schedule: [...soFar(), ...acts], run: scheduled });
    if (mine !== question) return;
    live = film.live;
    show(film, film.trace.steps.length);
  } catch (error) {
    tell(error.message);
  }
}

/** Finds out what may be done where the page is. */
async function look() {
  const mine = ++question;
  if (at === run.length) {
    live = run.film.live;
    draw();
    return;
  }
  try {
    const film = await ask({ schedule: soFar(), run: null });
    if (mine !== question) return;
    live = film.live;
    draw();
  } catch (error) {
    tell(error.message);
  }
}

function tell(text) {
  $("told").textContent = text;
  $("told").hidden = !text;
}

function card(process, p) {
  const title = make("h3", {}, `process ${p}`, chip(process.section, process.section), process.crashed ? "✕ crashed" : null);
  const buttons = make("div", { class: "buttons" });
  const next = process.moves.map((move) => {
    const label = move.choice ?? "Step";
    buttons.append(make("button", { type: "button", class: "move", onclick: () => goOn([{ process: p, ...(move.choice && { choice: move.choice }) }], null) }, label));
    const leads = move.to === process.section ? "" : `, then in ${move.to}`;
    return make("div", { class: "next" }, `line ${move.line}: ${move.access}${leads}`);
  });
  if (!process.crashed && process.section !== "remainder") {
    buttons.append(make("button", { type: "button", class: "crash", onclick: () => goOn([{ process: p, crashes: true }], null) }, "Crash"));
  }
  // Of many choices the first accesses are mostly the same.
  const few = next.length > 2 ? next.slice(0, 1) : next;
  const alone = process.alone ? make("div", { class: "alone" }, process.alone) : null;
  return make("div", { class: "card", "data-process": p, "data-section": process.section }, title, ...few, alone, buttons);
}

function draw() {
  $("choices").replaceChildren(...live.processes.map(card));
  const rest = run.length - at;
  $("back-in-time").textContent = rest > 0 ? `Whoever moves now, the ${rest} steps that follow are forgotten.` : "";
  tell("");
}

function build() {
  document.body.classList.add("live");
  const options = live.schedulers.map((name) => make("option", {}, name));
  const scheduler = make("select", { id: "scheduler", "aria-label": "Scheduler" }, ...options);
  const steps = make("input", { type: "number", id: "steps", min: 1, max: 5000, value: 20, "aria-label": "Steps" });
  const begin = () => goOn([], { scheduler: scheduler.value, seed: Math.floor(Math.random() * 1e9), steps: Math.max(1, Math.floor(Number(steps.value)) || 1) });
  $("explorer").replaceChildren(
    make("div", { id: "choices" }),
    make("div", { id: "run" }, "Let ", scheduler, " decide for ", steps, " steps ", make("button", { type: "button", id: "go", onclick: begin }, "Run")),
    make("p", { class: "more" }, "The keys 0 to 9 move that process; ← goes back. ", make("span", { id: "back-in-time" })),
    make("p", { id: "told", class: "message", role: "alert", hidden: true }),
  );
  $("explorer").hidden = false;
  document.addEventListener("moved", look);
  document.addEventListener("keydown", (event) => {
    if (!/^[0-9]$/.test(event.key) || event.target.closest?.("input, select") || event.altKey || event.ctrlKey || event.metaKey) return;
    $("choices").querySelector(`[data-process="${event.key}"] .move`)?.click();
  });
  draw();
}

build();
