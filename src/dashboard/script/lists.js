// @ts-check

/* Lists: filter, sort, choose, and copy a value from its row. */

/**
 * Browsers lay out a group of rows once it is seen. Until then its height is that of so many rows.
 * @param {HTMLTableSectionElement} body
 * @param {number} rows
 */
function stretch(body, rows) {
  body.style.containIntrinsicBlockSize = `calc(${rows} * var(--row))`;
}

for (const table of every("table", ".long")) for (const body of table.tBodies) stretch(body, body.rows.length);

/** The table after the line of a control. @param {HTMLElement} control */
function tableAfter(control) {
  return /** @type {HTMLTableElement} */ (control.closest(".filter")?.nextElementSibling);
}

/* Filter: by parts of a name, and by whole words of marked cells, such as missing. And the search of everything. */

for (const [at, field] of every("input", "[data-filter]").entries()) {
  const table = tableAfter(field);
  const groups = [...table.tBodies].map((body) => ({ body, rows: [...body.rows] }));
  const names = new Map(
    groups.flatMap(({ rows }) =>
      rows.map((row) => [row, (row.dataset.name ?? row.cells[0].textContent).toLowerCase()]),
    ),
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
    everywhere.hidden = all > 0 || !searchField || isKey(field.value);
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
    for (const group of groups) group.rows = [...group.body.rows];
    filter();
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
    const rows = bodies.flatMap((body) => [...body.rows]);
    for (const other of heading.parentElement?.children ?? []) other.ariaSort = null;
    heading.ariaSort = isUp ? "ascending" : "descending";
    const inOrder = rows.map((row) => {
      const cell = row.cells[heading.cellIndex];
      const [time, data] = [cell.querySelector("time"), cell.querySelector("data")];
      return { row, value: time?.dateTime ?? data?.value ?? cell.textContent };
    });
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

/* What comes into the row that is under the pointer or has the focus: buttons that copy its values, and one that edits it */

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
    if (!link) return; // the day of rows, or one that is chosen
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
      field.autocapitalize = "none";
      field.spellcheck = false;
      field.addEventListener("keydown", ({ key }) => {
        if (key !== "Escape" || fields.some(({ value }) => value !== "")) return;
        for (const one of fields) one.remove();
        every("a", "", row)[0].focus();
      });
      cell.append(field);
      return field;
    });
    fields[0].focus();
  };
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
      if (other.closest("[hidden]") === null) other.checked = box.checked;
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
