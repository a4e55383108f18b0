// Before the first paint, so that a dark room stays dark.
(() => {
  let chosen = "auto";
  try { chosen = localStorage.getItem("theme") || "auto"; } catch { /* private mode */ }
  if (chosen !== "auto") document.documentElement.dataset.theme = chosen;
})();
