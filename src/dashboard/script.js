/* The dashboard's one script: filter, sort, send forms, show a value and take it away again. Text is set as text. */

const shownMs = 30_000;

/*
 * The link in the terminal has its code after the #, which browsers send to nobody. It leaves the history at once. It
 * may be opened in a tab that is locked: that goes on to where it was.
 */
const unlockForm = document.querySelector("form[data-unlock]");
if (unlockForm) {
  const { code, page } = unlockForm.elements;
  if (page.value === "/") page.value = sessionStorage.getItem("locked") ?? "/";
  sessionStorage.setItem("locked", page.value);
  const unlock = () => {
    if (location.hash.length <= 1) return;
    code.value = location.hash;
    history.replaceState(null, "", location.pathname + location.search);
    unlockForm.requestSubmit();
  };
  addEventListener("hashchange", unlock);
  unlock();
} else sessionStorage.removeItem("locked");

// Browsers lay out a group of rows once it is seen. Until then its height is that of so many rows.
function stretch(body, rows) {
  body.style.containIntrinsicBlockSize = `calc(${rows} * var(--row))`;
}

for (const body of document.querySelectorAll(".long tbody")) stretch(body, body.rows.length);

/* Filter: by parts of a name, and by whole words of marked cells, such as missing. And the search of everything. */

const searchField = document.querySelector("header [name=q]");

for (const [at, field] of document.querySelectorAll("[data-filter]").entries()) {
  const line = field.closest(".filter");
  const table = line.nextElementSibling;
  const names = new Map();
  for (const row of table.querySelectorAll("tbody tr")) {
    names.set(row, (row.dataset.name ?? row.firstElementChild.textContent).toLowerCase());
  }
  const marks = new Map();
  for (const mark of table.querySelectorAll("tbody :is(.no, .missing, .due)")) {
    const row = mark.closest("tr");
    marks.set(row, `${marks.get(row) ?? " "}${mark.textContent.trim()} `);
  }
  const count = line.querySelector("output");
  const kept = keptInAddress(`filter${at === 0 ? "" : at + 1}`);
  const everywhere = element("a", { hidden: true });
  count.after(everywhere);
  const groups = [...table.tBodies].map((body) => ({ body, rows: [...body.rows] }));
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    const has = (row) => words.every((word) => names.get(row).includes(word) || marks.get(row)?.includes(` ${word} `));
    let all = 0;
    for (const { body, rows } of groups) {
      const shown = new Set(rows.filter(has));
      all += shown.size;
      const isHidden = shown.size === 0;
      if (body.hidden !== isHidden) body.hidden = isHidden;
      if (isHidden) continue;
      for (const row of rows) if (row.hidden === shown.has(row)) row.hidden = !row.hidden;
      stretch(body, shown.size);
    }
    count.textContent = field.value === "" ? "" : `${all} of ${names.size}`;
    everywhere.hidden = all > 0 || searchField === null;
    everywhere.href = `/find?q=${encodeURIComponent(field.value)}`;
    everywhere.textContent = `Find ${field.value} everywhere`;
  };
  const typed = () => {
    filter();
    kept.keep(field.value);
  };
  field.addEventListener("input", typed);
  field.addEventListener("change", kept.now);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      // What gets the focus must not get the key, too: it would follow the link, or send the form.
      event.preventDefault();
      const first = table.querySelector("tbody:not([hidden]) tr:not([hidden]) :is(a, input)");
      (first ?? everywhere).focus();
    }
    if (event.key !== "Escape") return;
    field.value = "";
    typed();
  });
  if (kept.value !== "") {
    field.value = kept.value;
    filter();
  }
  table.addEventListener("sort", () => {
    for (const group of groups) group.rows = [...group.body.rows];
    filter();
  });
}

// The key / goes to the filter and, from the empty filter, on to the search. Ctrl-K goes to the search from anywhere.
document.addEventListener("keydown", (event) => {
  const { target, key, ctrlKey, metaKey, altKey } = event;
  const isInEmptyFilter = target.matches("[data-filter]") && target.value === "";
  const isTyping = target.closest("input, textarea, select") !== null && !isInEmptyFilter;
  const isControl = ctrlKey || metaKey;
  const isOffered = key === "k" && isControl;
  if (altKey || !(isOffered || (key === "/" && !isTyping && !isControl))) return;
  const field = (isInEmptyFilter || isOffered ? null : document.querySelector("[data-filter]")) ?? searchField;
  if (field === null) return;
  event.preventDefault();
  field.focus();
  field.select();
  if (isOffered) void offer();
});

/*
 * What the search offers below its field: where people go most often and, while they type, the best hits. The arrows
 * choose one. Enter goes there; with none chosen, it sends the form. One question is asked at a time.
 */

const offers = element("div", { id: "offers", role: "listbox", ariaLabel: "Pages to go to" });
const offersSaid = element("p", { className: "quiet", role: "status" });
const offersBox = element("div", { className: "offers", hidden: true });

if (searchField) {
  offersBox.append(offers, offersSaid);
  searchField.after(offersBox);
  Object.assign(searchField, { role: "combobox", ariaAutoComplete: "list" });
  // On a phone it has no room for more.
  if (searchField.clientWidth > 150) searchField.placeholder += " (Ctrl-K)";
  searchField.setAttribute("aria-controls", offers.id);
  searchField.setAttribute("aria-keyshortcuts", "/ Control+K");
  stopOffering();
  searchField.addEventListener("input", offer);
  searchField.addEventListener("blur", stopOffering);
  // The field keeps the focus, so a click on what is offered comes.
  offersBox.addEventListener("mousedown", (event) => event.preventDefault());
  searchField.addEventListener("keydown", (event) => {
    const all = [...offers.children];
    const at = all.findIndex((one) => one.ariaSelected === "true");
    if (event.key === "ArrowDown" && offersBox.hidden) void offer();
    else if (event.key === "ArrowDown") chooseOffer(all[at + 1]);
    else if (event.key === "ArrowUp") chooseOffer(at === -1 ? all.at(-1) : all[at - 1]);
    else if (event.key === "Enter" && at >= 0) all[at].click();
    else if (event.key === "Escape" && !offersBox.hidden) stopOffering();
    else return;
    event.preventDefault();
  });
}

async function offer() {
  if (offers.ariaBusy) return;
  offers.ariaBusy = "true";
  let q;
  let answer;
  do {
    q = searchField.value;
    answer = await offersFor(q);
  } while (q !== searchField.value);
  offers.ariaBusy = null;
  if (document.activeElement !== searchField) return;
  const { offers: found = [], said, error } = answer;
  const options = found.map(({ name, about, to }, at) => {
    const option = element("a", { id: `offer-${at}`, role: "option", ariaSelected: "false", href: to, tabIndex: -1 });
    option.append(element("bdi", { textContent: name }), " ", element("small", { textContent: about }));
    return option;
  });
  offers.replaceChildren(...options);
  offers.hidden = found.length === 0;
  offersSaid.textContent = error ?? said;
  chooseOffer();
  offersBox.hidden = false;
  searchField.ariaExpanded = "true";
}

function offersFor(q) {
  const asked = new URLSearchParams({ q, page: location.pathname });
  const answer = fetch(`/find/offers?${asked}`, { headers: { accept: "application/json" } });
  return answer.then((found) => found.json()).catch(() => ({ error: unanswered() }));
}

function chooseOffer(option) {
  for (const one of offers.children) one.ariaSelected = String(one === option);
  if (option) searchField.setAttribute("aria-activedescendant", option.id);
  else searchField.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

function stopOffering() {
  offersBox.hidden = true;
  searchField.ariaExpanded = "false";
  chooseOffer();
}

function unanswered() {
  return navigator.onLine ? "The dashboard did not answer. Does it still run?" : "This device is offline.";
}

/**
 * What somebody chose on a page is in its address: it is there again when they come back, and for whom they send it to.
 * Browsers take few changes of an address in a second, so it is kept a moment later, or `now`.
 */
function keptInAddress(name) {
  let timer;
  let next;
  const now = () => {
    if (next === undefined) return;
    clearTimeout(timer);
    const url = new URL(location);
    if (next === "") url.searchParams.delete(name);
    else url.searchParams.set(name, next);
    next = undefined;
    history.replaceState(history.state, "", url);
  };
  const keep = (value) => {
    next = value;
    clearTimeout(timer);
    timer = setTimeout(now, 300);
  };
  return { value: new URL(location).searchParams.get(name) ?? "", keep, now };
}

/* Sort */

const sorted = keptInAddress("sort");

for (const heading of document.querySelectorAll("[data-sort] > th")) {
  const button = element("button", { type: "button", className: "sort", textContent: heading.textContent });
  heading.replaceChildren(button);
  const sort = (isUp) => {
    const table = heading.closest("table");
    const bodies = [...table.tBodies];
    const rows = bodies.flatMap((body) => [...body.rows]);
    for (const other of heading.parentElement.cells) other.ariaSort = null;
    heading.ariaSort = isUp ? "ascending" : "descending";
    const cellValue = (row) => {
      const cell = row.cells[heading.cellIndex];
      return cell.querySelector("time")?.dateTime ?? cell.textContent;
    };
    const order = new Intl.Collator("en", { numeric: true }).compare;
    const inOrder = rows.map((row) => ({ row, value: cellValue(row) }));
    inOrder.sort((a, b) => (isUp ? order(a.value, b.value) : order(b.value, a.value)));
    const size = bodies[0].rows.length;
    for (const [at, body] of bodies.entries()) {
      body.replaceChildren(...inOrder.slice(at * size, (at + 1) * size).map(({ row }) => row));
    }
    table.dispatchEvent(new Event("sort"));
  };
  button.addEventListener("click", () => {
    const isUp = heading.ariaSort !== "ascending";
    sort(isUp);
    sorted.keep(`${isUp ? "" : "-"}${button.textContent}`);
    sorted.now();
  });
  if (sorted.value.replace("-", "") === button.textContent) sort(!sorted.value.startsWith("-"));
}

/* Copy in a row: its buttons come into the row that is under the pointer or has the focus */

for (const form of document.querySelectorAll("form[data-copy]")) {
  const table = form.previousElementSibling;
  const places = form.dataset.copy.split(" ");
  const headings = [...table.tHead.rows[0].cells].map((one) => one.textContent);
  const offer = ({ target }) => {
    const row = target.closest("tbody tr");
    if (row === null || row.querySelector(".copy")) return;
    for (const button of table.querySelectorAll(".copy")) {
      if (!button.closest("tr").matches(":hover, :focus-within")) button.remove();
    }
    const name = new URL(row.querySelector("a").href).searchParams.get("name");
    for (const [at, value] of headings.entries()) {
      if (!places.includes(value) || !row.cells[at].querySelector("time")) continue;
      const words = { textContent: "Copy", ariaLabel: `Copy ${name} in ${value}` };
      const button = element("button", { className: "quiet copy", name: "environment", value, ...words });
      button.setAttribute("form", form.id);
      button.addEventListener("click", () => {
        form.elements.name.value = name;
      });
      row.cells[at].append(button);
    }
  };
  for (const what of ["pointerover", "focusin", "click"]) table.addEventListener(what, offer);
}

/* Times: in the reader's zone, by a finger too, and in UTC. What says how long ago something was grows older. */

/** Such as 2026-11-28 16:57:24 GMT+9: the form that days have everywhere. */
const inZone = ({ dateTime }) => new Date(dateTime).toLocaleString("sv-SE", { dateStyle: "short", timeStyle: "long" });
const moments = [...document.querySelectorAll("time")];
const ages = moments.filter((time) => time.textContent !== time.dateTime);
for (const time of moments) if (time.textContent === time.dateTime) time.textContent = inZone(time);

document.addEventListener("mouseover", ({ target }) => {
  if (target instanceof HTMLTimeElement) target.title = `${inZone(target)}, ${target.dateTime}`;
});

document.addEventListener("click", ({ target }) => {
  if (target instanceof HTMLTimeElement && !target.closest("a")) say(`${inZone(target)}, ${target.dateTime}`);
});

const relative = new Intl.RelativeTimeFormat("en");
const unitsMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

// As `inWords` of words/ago.ts says it.
setInterval(() => {
  for (const time of ages) {
    const ms = Date.parse(time.dateTime) - Date.now();
    const size = Math.abs(ms);
    if (size < unitsMs.minute) continue;
    const unit = size < unitsMs.hour ? "minute" : size < 2 * unitsMs.day ? "hour" : "day";
    const words = relative.format(Math.trunc(ms / unitsMs[unit]), unit);
    if (time.textContent !== words) time.textContent = words;
  }
}, unitsMs.minute);

/* A page that waits for something loads itself again when it is there. It looks for ten minutes, then says so. */

const awaiting = document.querySelector("[data-awaits]");
if (awaiting) look(300);

function look(times) {
  setTimeout(async () => {
    if (await hasArrived()) location.reload();
    else if (times > 1) look(times - 1);
    else awaiting.textContent = awaiting.dataset.awaits;
  }, 2000);
}

async function hasArrived() {
  try {
    const answer = await fetch(location);
    return answer.status < 500 && !(await answer.text()).includes("data-awaits");
  } catch {
    return false;
  }
}

/* Boxes: one that checks all that are shown, and a button that says how many are checked of which part */

for (const box of document.querySelectorAll("[data-all]")) {
  const table = box.closest(".filter").nextElementSibling;
  box.addEventListener("change", () => {
    for (const other of table.querySelectorAll(`[name="${box.dataset.all}"]`)) {
      if (other.closest("[hidden]") === null) other.checked = box.checked;
    }
  });
}

for (const form of document.querySelectorAll("form:has([data-count])")) {
  const button = form.querySelector(".send button");
  const words = button.textContent;
  form.addEventListener("change", () => {
    const counts = [...form.querySelectorAll("[data-count]")].flatMap((part) => {
      const chosen = part.querySelectorAll("[name]:checked").length;
      return chosen === 0 ? [] : part.dataset.count.replace("#", chosen);
    });
    const said = counts.join(", ");
    button.textContent = said === "" ? words : said[0].toUpperCase() + said.slice(1);
  });
}

for (const field of document.querySelectorAll("textarea[name^='value.']")) {
  const button = element("button", { type: "button", className: "quiet", textContent: "Generate 32 characters" });
  button.addEventListener("click", () => {
    const bytes = crypto.getRandomValues(new Uint8Array(24));
    field.value = btoa(String.fromCharCode(...bytes))
      .replaceAll("+", "-")
      .replaceAll("/", "_");
    field.focus();
  });
  field.after(button);
}

/* Changes and secrets */

/** The forms with a text that nothing was done with yet. Browsers keep none of it, so leaving asks. */
const unsaved = new Set();

function hasText({ elements }) {
  return [...elements].some((one) => one.matches("textarea, [autocomplete=off]") && one.value !== one.defaultValue);
}

addEventListener("beforeunload", (event) => {
  if (unsaved.size > 0) event.preventDefault();
});

for (const form of document.querySelectorAll("form[data-change]")) {
  form.addEventListener("input", () => (hasText(form) ? unsaved.add(form) : unsaved.delete(form)));
  form.addEventListener("submit", (event) => {
    // A button that only shows something leads to a page that has what was typed.
    if (event.submitter.formMethod === "get") {
      unsaved.delete(form);
      return;
    }
    event.preventDefault();
    void send(form, event.submitter);
  });
}

async function send(form, button) {
  // A button that is disabled would lose the focus.
  if (button.ariaDisabled === "true") return;
  if (hiding.has(button)) return hiding.get(button)();
  const refusal = form.querySelector(".refusal");
  button.ariaDisabled = "true";
  const answer = ask(form, button);
  refusal.textContent = "";
  // Safari copies nothing later than the click, but takes the promise of a text.
  const how = button.dataset.secret ?? form.dataset.secret;
  const copying = how === "copied" && copy(answer.then(({ secret }) => secret ?? Promise.reject()));
  try {
    const { error, to, secret, again, unlessSeen, field, ...rest } = await answer;
    if (error === undefined) unsaved.delete(form);
    if (error !== undefined) refuse(form, button, { error, unlessSeen, field, again });
    else if (copying) sayCopied(await copying, button, refusal);
    else if (how === "shown") show(form.querySelector("output.secret"), button, secret);
    else if (secret !== undefined) finish(form, secret, to, rest);
    else location.assign(to);
  } catch {
    refusal.textContent = how === "once" ? lostKey : `${unanswered()} What you typed is still here.`;
  } finally {
    button.ariaDisabled = null;
  }
}

async function ask(form, button) {
  const response = await fetch(form.action, {
    method: "POST",
    headers: { accept: "application/json" },
    body: new URLSearchParams(new FormData(form, button)),
  });
  return response.status === 413
    ? { error: "This form takes at most 4096 KiB. Nothing was done: use a command." }
    : response.json();
}

/**
 * Says what is wrong, and leads to the field that is.
 * @param unlessSeen - the fields of a form that saw what somebody else wrote, and writes over it
 * @param again - where to sign in: in another tab, so that what was typed stays
 */
function refuse(form, { className, textContent }, { error, unlessSeen, field, again }) {
  const refusal = form.querySelector(".refusal");
  refusal.textContent = error;
  if (again !== undefined) {
    const link = linkTo(again, "Sign in in a new tab");
    refusal.append(
      " ",
      Object.assign(link, { target: "_blank", rel: "noreferrer" }),
      `, then press ${textContent} here.`,
    );
  }
  if (unlessSeen !== undefined) {
    const words = className === "danger" ? "Delete it all the same" : "Save over it";
    const button = element("button", { className, textContent: words });
    button.addEventListener("click", () => {
      for (const [name, value] of Object.entries(unlessSeen)) form.elements[name].value = value;
    });
    refusal.append(" ", button);
  }
  const found = field && form.elements[field];
  const wrong = found instanceof RadioNodeList ? found[0] : found;
  if (!wrong) return;
  const hiding = wrong.closest("details");
  if (hiding) hiding.open = true;
  wrong.ariaInvalid = "true";
  wrong.addEventListener("input", () => (wrong.ariaInvalid = null), { once: true });
  wrong.focus();
}

const lostKey =
  "No answer came. If a key was made, nobody has its text: look for it in the list of keys and revoke it, then try again.";

/** How to take away each value that is shown, by the button that showed it. */
const hiding = new Map();

/** Shows a value for a while. Its button counts down, and hides it if it is pressed again. */
function show(output, button, secret) {
  const { textContent: words, ariaLabel: label } = button;
  const endsAt = performance.now() + shownMs;
  const count = () => {
    button.textContent = `Hide (${Math.ceil((endsAt - performance.now()) / 1000)} s)`;
  };
  output.replaceChildren(secret === "" ? element("em", { textContent: "empty" }) : secret);
  output.tabIndex = 0; // a long one scrolls in its box
  const note = element("small", { textContent: aboutValue(secret) });
  output.after(note);
  button.ariaLabel = label.replace(words, "Hide");
  count();
  const counting = setInterval(count, 1000);
  const hide = () => {
    clearInterval(counting);
    clearTimeout(ending);
    hiding.delete(button);
    output.replaceChildren();
    output.removeAttribute("tabindex");
    note.remove();
    button.textContent = words;
    button.ariaLabel = label;
  };
  const ending = setTimeout(hide, shownMs);
  hiding.set(button, hide);
}

/** How long a value is, and what in it nobody sees. */
function aboutValue(secret) {
  const unseen = [...secret].filter((one) => /[\p{C}\p{Zl}\p{Zp}\u00a0]/u.test(one) && !"\n\t".includes(one));
  const codes = [...new Set(unseen)].map(
    (one) => `U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
  const length = [...secret].length;
  return [
    `${length.toLocaleString("en")} character${length === 1 ? "" : "s"}`,
    ...(/^\s/.test(secret) ? ["begins with a blank"] : []),
    ...(secret.endsWith("\n") ? ["ends in a newline"] : /\s$/.test(secret) ? ["ends with a blank"] : []),
    ...(codes.length > 0 ? [`with what cannot be seen: ${codes.join(", ")}`] : []),
  ].join(", ");
}

/** Whether the browser lets the page copy. @param text - the promise of it */
async function copy(text) {
  try {
    const blob = text.then((text) => new Blob([text], { type: "text/plain" }));
    blob.catch(() => {});
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    return true;
  } catch {
    return false;
  }
}

function sayCopied(isCopied, button, refusal) {
  refusal.textContent = isCopied ? "" : "The browser did not let the page copy. Show the text, or allow the clipboard.";
  if (!isCopied) return;
  // The button may be gone by now: its row had the pointer.
  say(`${button.ariaLabel?.replace(/^Copy /, "") ?? "The text"} is on the clipboard.`);
  if (button.textContent === "Copied") return;
  const words = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = words;
  }, 2000);
}

/** Says something in a corner of the page, to screen readers, too. */
const toast = element("p", { className: "toast", role: "status" });
document.body.append(toast);
let toasting;

function say(words) {
  clearTimeout(toasting);
  toast.textContent = words[0].toUpperCase() + words.slice(1);
  toasting = setTimeout(() => toast.replaceChildren(), 5000);
}

/** After a key was made, which is shown once: copying its text, using it and going on are what is left to do. */
function finish(form, secret, to, { notice, use }) {
  const output = form.querySelector("output.secret");
  output.textContent = secret;
  const refusal = form.querySelector(".refusal");
  const note = element("p", { textContent: notice });
  const button = copier(output, refusal);
  const actions = element("p", { className: "actions" });
  actions.append(button, linkTo(to, "Go on"));
  form.replaceChildren(note, output, actions, refusal);
  if (use !== undefined) {
    const lines = element("output", { className: "secret", textContent: use.lines });
    form.append(element("p", { textContent: use.words }), lines, copier(lines, refusal));
  }
  button.focus();
}

for (const button of document.querySelectorAll("[data-copies]")) {
  copying(button, document.getElementById(button.dataset.copies), button);
}

function copier(source, refusal) {
  return copying(element("button", { type: "button", textContent: "Copy" }), source, refusal);
}

/** Makes a button copy a text. */
function copying(button, source, refusal) {
  button.addEventListener("click", async () => {
    sayCopied(await copy(Promise.resolve(source.textContent)), button, refusal);
  });
  return button;
}

function linkTo(path, words) {
  return element("a", { href: path, textContent: words });
}

function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

// Nothing is left in a page that the browser keeps for going back.
addEventListener("pagehide", () => {
  for (const hide of hiding.values()) hide();
  for (const output of document.querySelectorAll("output.secret")) output.replaceChildren();
});
