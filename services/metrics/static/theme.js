// Before the first paint: the theme that was chosen here once. Without a choice, the system's.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* no storage: the system's */ }
