// Before anything is drawn, so that a chosen theme does not flash. A file, not a line in the page: the CSP allows no inline script.
(function () {
  try {
    var theme = localStorage.getItem("mlcd-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch (blocked) { /* no storage: the system's theme */ }
})();
