// What htmx cannot: Ctrl+Enter sends a form, and changes of the skills are listened for.
"use strict";

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("form[data-quick]");
  if (form && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit(form.querySelector("button.main"));
  }
});

const live = document.querySelector("[data-live]");
if (live) {
  const source = new EventSource(live.dataset.live);
  source.addEventListener("reloaded", () => htmx.trigger(document.body, "skills-changed"));
  window.addEventListener("pagehide", () => source.close());
}
