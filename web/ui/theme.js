// Light, dark, or as the system has it.
const KEY = 'roundhouse-theme';
const order = ['system', 'light', 'dark'];

export const theme = () => (order.includes(localStorage.getItem(KEY)) ? localStorage.getItem(KEY) : 'system');

export function restoreTheme() {
  if (theme() === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme();
}

export function nextTheme() {
  localStorage.setItem(KEY, order[(order.indexOf(theme()) + 1) % order.length]);
  restoreTheme();
}
