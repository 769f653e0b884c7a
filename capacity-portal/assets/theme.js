"use strict";
// Runs before the page is painted. Without a choice, the style sheet follows the system.
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden: then there is no choice.
}
