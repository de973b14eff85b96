// Light, dark, or as the system has it. Pictures on a canvas need the colours as values.

type Choice = 'system' | 'light' | 'dark';

class Theme {
  choice: Choice = $state((localStorage.getItem('twixt-theme') as Choice) ?? 'system');
  /** Counts up when colours change. */
  version = $state(0);

  constructor() {
    this.apply();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => (this.version += 1));
  }

  toggle(): void {
    this.choice = this.isDark() ? 'light' : 'dark';
    localStorage.setItem('twixt-theme', this.choice);
    this.apply();
  }

  isDark(): boolean {
    return this.choice === 'dark' || (this.choice === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  }

  private apply(): void {
    if (this.choice === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.choice;
    this.version += 1;
  }
}

export const theme = new Theme();

/** Colours that were looked up since they changed last: asking the browser makes it compute styles. */
const looked = { version: -1, colours: new Map<string, string>() };

/** The colour that a variable of the style sheet has now. */
export function colour(name: string): string {
  if (looked.version !== theme.version) Object.assign(looked, { version: theme.version, colours: new Map<string, string>() });
  const known = looked.colours.get(name);
  if (known) return known;
  const found = look(name);
  looked.colours.set(name, found);
  return found;
}

function look(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** The same colour, let through. */
export function faded(name: string, alpha: number): string {
  const [red = 0, green = 0, blue = 0] = (colour(name).match(/[\d.]+/g) ?? []).map(Number);
  return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
}
