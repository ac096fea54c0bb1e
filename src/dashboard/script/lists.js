// @ts-check

/* Lists: filter, fold, sort and choose; copy a value from its row, and edit in it. */

/**
 * Browsers lay out a group of rows once it is seen. Until then its height is that of so many rows.
 * @param {HTMLTableSectionElement} body
 * @param {number} rows
 */
function stretch(body, rows) {
  body.style.containIntrinsicBlockSize = `calc(${rows} * var(--row))`;
}

for (const table of every("table", ".long")) for (const body of table.tBodies) stretch(body, body.rows.length);

/** The rows of a part of a table, without what heads them. @param {HTMLTableSectionElement} body */
function rowsIn(body) {
  return [...body.rows].filter((row) => row.className !== "group");
}

/** The table after the line of a control. @param {HTMLElement} control */
function tableAfter(control) {
  return /** @type {HTMLTableElement} */ (control.closest(".filter")?.nextElementSibling);
}

/* Filter: by parts of a name, and by whole words of marked cells, such as missing. And the search of everything. */

for (const [at, field] of every("input", "[data-filter]").entries()) {
  const table = tableAfter(field);
  const parts = [...table.tBodies].map((body) => ({ body, rows: rowsIn(body) }));
  const names = new Map(
    parts.flatMap(({ rows }) => rows.map((row) => [row, (row.dataset.name ?? row.cells[0].textContent).toLowerCase()])),
  );
  const marks = new Map();
  for (const mark of every("*", ":is(.no, .missing, .due)", table)) {
    const row = mark.closest("tbody tr");
    marks.set(row, `${marks.get(row) ?? " "}${mark.textContent.trim()} `);
  }
  const [count] = every("output", "", field.closest(".filter") ?? table);
  const kept = keptInAddress(`filter${at === 0 ? "" : at + 1}`);
  const everywhere = element("a", { hidden: true });
  count.after(everywhere);
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    const has = (/** @type {HTMLTableRowElement} */ row) =>
      words.every((word) => names.get(row)?.includes(word) || marks.get(row)?.includes(` ${word} `));
    let all = 0;
    table.classList.toggle("flat", field.value !== "");
    for (const { body, rows } of parts) {
      const shown = new Set(rows.filter(has));
      all += shown.size;
      const isHidden = shown.size === 0;
      if (body.hidden !== isHidden) body.hidden = isHidden;
      if (isHidden) continue;
      for (const row of rows) if (row.hidden === shown.has(row)) row.hidden = !row.hidden;
      stretch(body, shown.size);
    }
    count.textContent = field.value === "" ? "" : `${all} of ${names.size}`;
    everywhere.hidden = all > 0 || !searchField || isKey(field.value);
    everywhere.href = `/find?q=${encodeURIComponent(field.value.slice(0, 1025).toWellFormed())}`;
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
      const [first = everywhere] = every("*", ":is(tbody:not([hidden]) tr:not([hidden]) :is(a, input))", table);
      first.focus();
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
    for (const part of parts) part.rows = rowsIn(part.body);
    filter();
  });
}

/* Groups: each can be folded, and all of them at once. An order of the rows ends them. */

for (const table of every("table", ".long")) {
  const bodies = every("tbody", "[data-group]", table);
  if (bodies.length === 0) continue;
  const kept = keptInAddress("folded");
  const groupOf = (/** @type {HTMLElement} */ one) => one.closest("tbody")?.dataset.group ?? "";
  const buttons = every("tr", ".group", table).map(({ cells: [cell] }) => {
    const button = element("button", { type: "button", className: "fold" });
    button.append(...cell.childNodes);
    cell.append(button);
    return button;
  });
  const names = buttons.map(groupOf);
  const all = element("button", { type: "button", className: "quiet" });
  const fold = (/** @type {string[]} */ folded) => {
    for (const button of buttons) {
      button.ariaExpanded = String(!folded.includes(groupOf(button)));
    }
    for (const body of bodies) {
      const isFolded = body.classList.toggle("folded", folded.includes(groupOf(body)));
      stretch(body, isFolded ? every("tr", ".group", body).length : body.rows.length);
    }
    all.textContent = folded.length < names.length ? "Fold" : "Unfold";
    all.ariaLabel = `${all.textContent} all groups`;
    kept.keep(folded.join(" "));
    kept.now();
  };
  const folded = () => names.filter((_, at) => buttons[at].ariaExpanded === "false");
  for (const [at, button] of buttons.entries()) {
    button.addEventListener("click", () => {
      const others = folded().filter((one) => one !== names[at]);
      fold(button.ariaExpanded === "true" ? [...others, names[at]] : others);
    });
  }
  all.addEventListener("click", () => fold(folded().length < names.length ? names : []));
  fold(names.filter((one) => kept.value.split(" ").includes(one)));
  table.previousElementSibling?.querySelector("output")?.after(all);
  table.addEventListener("sort", () => {
    for (const button of buttons) button.closest("tr")?.remove();
    for (const body of bodies) delete body.dataset.group;
    for (const body of bodies) body.className = "";
    all.remove();
  });
}

/* Sort */

const sorted = keptInAddress("sort");
const order = new Intl.Collator("en", { numeric: true }).compare;

for (const heading of every("tr", "[data-sort]").flatMap(({ cells }) => [...cells])) {
  const button = element("button", { type: "button", className: "sort", textContent: heading.textContent });
  heading.replaceChildren(button);
  const sort = (/** @type {boolean} */ isUp) => {
    const table = /** @type {HTMLTableElement} */ (heading.closest("table"));
    const bodies = [...table.tBodies];
    const sizes = bodies.map((body) => rowsIn(body).length);
    const rows = bodies.flatMap(rowsIn);
    for (const other of heading.parentElement?.children ?? []) other.ariaSort = null;
    heading.ariaSort = isUp ? "ascending" : "descending";
    const inOrder = rows.map((row) => {
      const cell = row.cells[heading.cellIndex];
      const [time, data] = [cell.querySelector("time"), cell.querySelector("data")];
      return { row, value: time?.dateTime ?? data?.value ?? cell.textContent };
    });
    inOrder.sort((a, b) => (isUp ? order(a.value, b.value) : order(b.value, a.value)));
    let from = 0;
    for (const [at, body] of bodies.entries()) {
      body.replaceChildren(...inOrder.slice(from, from + sizes[at]).map(({ row }) => row));
      from += sizes[at];
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

/* Buttons in the row that has the pointer or the focus: Copy for each value, and Edit. */

for (const table of every("table", ".long")) {
  const editing = /** @type {HTMLFormElement | null} */ (table.closest("form[data-rows]"));
  const next = (editing ?? table).nextElementSibling;
  const copying = next instanceof HTMLFormElement && next.dataset.copy !== undefined ? next : null;
  const headings = [...table.rows[0].cells].map((one) => one.textContent);
  /** The cells of a row below the headings that a form names. @returns {[string, HTMLTableCellElement][]} */
  const cellsOf = (/** @type {HTMLTableRowElement} */ { cells }, /** @type {string} */ places = "") =>
    headings.flatMap((heading, at) => (places.split(" ").includes(heading) ? [[heading, cells[at]]] : []));
  const offer = (/** @type {Event} */ event) => {
    const { target } = event;
    const row = target instanceof Element ? target.closest("tbody tr") : null;
    // Between the fields of a row, Tab meets no button.
    if (!(row instanceof HTMLTableRowElement) || row.querySelector(".offered, textarea")) return;
    for (const button of every("button", ".offered", table)) {
      if (!button.closest("tr")?.matches(":hover, :focus-within")) button.remove();
    }
    const [link] = every("a", "", row);
    if (!link) return; // a row that heads others, or one with a box
    const name = new URL(link.href).searchParams.get("name") ?? "";
    const put = (/** @type {Element} */ cell, /** @type {Partial<HTMLButtonElement>} */ words) => {
      const button = element("button", { className: "quiet offered", ...words });
      cell.append(button);
      return button;
    };
    if (editing) {
      const button = put(row.cells[0], { type: "button", textContent: "Edit", ariaLabel: `Edit ${name} here` });
      button.addEventListener("click", () => {
        for (const one of every("button", ".offered", row)) one.remove();
        edit(row, name);
      });
    }
    // The tap of a finger would press the button that it brings, and copy. The page of the item has one.
    if (!copying || (event instanceof PointerEvent && event.pointerType === "touch")) return;
    for (const [value, cell] of cellsOf(row, copying.dataset.copy)) {
      if (!cell.querySelector("time")) continue;
      const words = { textContent: "Copy", ariaLabel: `Copy ${name} in ${value}` };
      const button = put(cell, { name: "environment", value, ...words });
      button.setAttribute("form", copying.id);
      button.addEventListener("click", () => {
        const field = fieldOf(copying, "name");
        if (field) field.value = name;
      });
    }
  };
  const edit = (/** @type {HTMLTableRowElement} */ row, /** @type {string} */ name) => {
    const fields = cellsOf(row, editing?.dataset.rows).map(([heading, cell]) => {
      const field = document.createElement("textarea");
      field.name = `value.${heading}.${name}`;
      field.rows = 1;
      field.ariaLabel = `New value of ${name} in ${heading}`;
      field.placeholder = cell.querySelector("time") ? "unchanged" : "none yet";
      field.autocomplete = "off"; // Firefox keeps what is typed on disk if only the form says so
      field.autocapitalize = "none";
      field.spellcheck = false;
      field.addEventListener("keydown", ({ key }) => {
        if (key !== "Escape" || fields.some(({ value }) => value !== "")) return;
        for (const one of fields) one.remove();
        markEdited();
        every("a", "", row)[0].focus();
      });
      cell.append(field);
      return field;
    });
    markEdited();
    fields[0].focus();
  };
  // A class, because `:has` in the style sheet would look through all rows after each letter in the filter.
  const markEdited = () => editing?.classList.toggle("edited", editing.querySelector("textarea") !== null);
  for (const what of ["pointerover", "focusin", "click"]) table.addEventListener(what, offer);
  editing?.addEventListener("submit", () => {
    const here = fieldOf(editing, "here");
    if (here) here.value = location.search;
  });
}

/* Boxes: one that checks all that are shown, and a button that says how many are checked of which part */

for (const box of every("input", "[data-all]")) {
  const table = tableAfter(box);
  box.addEventListener("change", () => {
    for (const other of every("input", `[name="${box.dataset.all}"]`, table)) {
      if (other.checkVisibility()) other.checked = box.checked;
    }
  });
}

for (const form of every("form", ":has([data-count])")) {
  const [send] = every("*", ".send", form);
  const [button] = every("button", "", send);
  const words = button.textContent;
  form.addEventListener("change", () => {
    const counts = every("*", "[data-count]", form).flatMap((part) => {
      const chosen = part.querySelectorAll("[name]:checked").length;
      return chosen === 0 ? [] : (part.dataset.count ?? "").replace("#", String(chosen));
    });
    const said = counts.join(", ");
    button.textContent = said === "" ? words : said[0].toUpperCase() + said.slice(1);
  });
}
