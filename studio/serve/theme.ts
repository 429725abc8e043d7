/** Dark or light: the system's preference, until the user changes it. */

const KEY = "surefoot-theme";
export type Theme = "dark" | "light";

export function startTheme(): void {
  const stored = localStorage.getItem(KEY);
  const light = matchMedia("(prefers-color-scheme: light)").matches;
  document.documentElement.dataset["theme"] = stored ?? (light ? "light" : "dark");
}

export function theme(): Theme {
  return document.documentElement.dataset["theme"] === "light" ? "light" : "dark";
}

export function toggleTheme(): Theme {
  const next: Theme = theme() === "light" ? "dark" : "light";
  localStorage.setItem(KEY, next);
  document.documentElement.dataset["theme"] = next;
  return next;
}
