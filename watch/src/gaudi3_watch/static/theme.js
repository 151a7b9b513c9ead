// Before anything is drawn: the colours that were chosen here before, else those of the system.
(function () {
  "use strict";
  var chosen = null;
  try { chosen = localStorage.getItem("gaudi3-watch-theme"); } catch (_error) { /* storage may be forbidden */ }
  if (chosen !== "light" && chosen !== "dark") {
    chosen = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.dataset.theme = chosen;
})();
