// Asks, shows what came, and asks again. What was known stays on the page when an answer fails; the page
// says that it is old.

import { Failure } from './api';
import { access } from './access.svelte';
import { isLive, refreshMs, span } from './time.svelte';

/** What was asked for. Answers are replaced as a whole: thousands of rows need not be watched one by one. */
export class Watched<T> {
  data: T | null = $state.raw(null);
  failure: Failure | null = $state.raw(null);
  /** When the last answer came. */
  at = $state(0);
  isLoading = $state(true);
}

/**
 * Calls `load` now, whenever something that `inputs` reads changes, and from time to time while the page is
 * live. Must be called while a component is set up.
 */
export function watch<T>(inputs: () => unknown, load: (signal: AbortSignal) => Promise<T>): Watched<T> {
  const state = new Watched<T>();
  $effect(() => {
    inputs();
    void access.attempt;
    const [live, again] = [isLive(), refreshMs(span())];
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async () => {
      let wait = again;
      try {
        const data = await load(stop.signal);
        if (stop.signal.aborted) return;
        Object.assign(state, { data, failure: null, at: Date.now(), isLoading: false });
        access.isNeeded = false;
      } catch (problem) {
        if (stop.signal.aborted) return;
        const failure = problem instanceof Failure ? problem : new Failure('refused', String(problem));
        Object.assign(state, { failure, isLoading: false });
        if (failure.kind === 'token') return access.need(failure.message);
        wait = Math.max(again, failure.retrySeconds * 1000);
        if (failure.kind === 'refused') return;
      }
      if (live || state.failure) timer = setTimeout(runWhenSeen, wait);
    };
    // A page that nobody sees asks nothing.
    const runWhenSeen = () => {
      if (!document.hidden) return void run();
      document.addEventListener('visibilitychange', () => void run(), { once: true, signal: stop.signal });
    };
    void run();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  });
  return state;
}
