// Light and dark: as the system has it, or as the reader has chosen.

const root = document.documentElement;
const system = matchMedia('(prefers-color-scheme: dark)');

export const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : system.matches);

// start restores what the reader chose once. changed is called when the system's choice changes.
export function start(changed) {
  try {
    const theme = localStorage.getItem('theme');
    if (theme) root.dataset.theme = theme;
  } catch { /* some windows have no storage */ }
  system.addEventListener('change', changed);
}

export function toggle() {
  root.dataset.theme = isDark() ? 'light' : 'dark';
  try { localStorage.setItem('theme', root.dataset.theme); } catch { /* some windows have no storage */ }
}
