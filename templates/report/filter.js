"use strict";
(function () {
  const form = document.getElementById("filter");
  if (!form) return;
  const bodies = Array.from(document.querySelectorAll("#ledger-table tbody"), (body) => ({
    body,
    rows: Array.from(body.querySelectorAll("tr.entry"), (row) => ({ row, text: row.textContent.toLowerCase() })),
  }));
  const total = bodies.reduce((sum, each) => sum + each.rows.length, 0);
  const status = document.getElementById("shown");
  let waiting = 0;

  function apply() {
    const wanted = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const entry = form.elements.entry.value;
    const losses = form.elements.losses.checked;
    let shown = 0;
    for (const { body, rows } of bodies) {
      let here = 0;
      for (const { row, text } of rows) {
        const fits =
          (!entry || row.dataset.entry === entry) &&
          (!losses || row.dataset.loss === "yes") &&
          wanted.every((word) => text.includes(word));
        if (row.hidden === fits) row.hidden = !fits;
        if (fits) here += 1;
      }
      body.hidden = here === 0;
      shown += here;
    }
    status.textContent = "Showing " + shown + " of " + total + " lines.";
  }

  function later() {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(apply, total > 2000 ? 150 : 0);
  }

  form.addEventListener("input", later);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => window.setTimeout(apply, 0));
  form.hidden = false;
  apply();
})();
