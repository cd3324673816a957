// What htmx cannot: Ctrl+Enter sends a form, a server that does not answer is told, and changes of
// the skills are listened for.
"use strict";

document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("form[data-quick]");
  if (form && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit(form.querySelector("button.main"));
  }
});

// Otherwise an earlier answer would stand under the new request, as if it were the answer to it.
document.addEventListener("htmx:error", (event) => {
  const place = event.detail.ctx?.target;
  if (!(place instanceof Element)) return;
  const told = document.createElement("p");
  told.className = "problem";
  told.setAttribute("role", "alert");
  told.textContent = "The server did not answer. Is it running, and can this machine reach it? Then try again.";
  if (place instanceof HTMLFormElement) {
    place.querySelector(":scope > .problem")?.remove();
    place.append(told);
  } else place.replaceChildren(told);
});

const live = document.querySelector("[data-live]");
if (live) {
  const source = new EventSource(live.dataset.live);
  source.addEventListener("reloaded", () => htmx.trigger(document.body, "skills-changed"));
  window.addEventListener("pagehide", () => source.close());
}
