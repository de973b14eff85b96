// What answers: a collector that runs, or an incident bundle, where time stands still.

import { ask, standStill, Failure, type Bundle, type Source } from './api';
import { access } from './access.svelte';

const RETRY_S = 2;

class KnownSource {
  bundle: Bundle | null = $state.raw(null);
  /** Pages wait for it: which time they show depends on it. */
  isKnown = $state(false);
  failure: Failure | null = $state.raw(null);

  /** Asks until it is known. Must be called in an effect, which stops it. */
  learn(signal: AbortSignal): void {
    void access.attempt;
    if (this.isKnown) return;
    const run = async () => {
      try {
        const { bundle } = await ask<Source>('source', {}, signal);
        if (bundle) standStill(bundle.range.end_ns);
        Object.assign(this, { bundle, isKnown: true, failure: null });
        access.isNeeded = false;
      } catch (problem) {
        if (signal.aborted) return;
        const failure = problem instanceof Failure ? problem : new Failure('refused', String(problem));
        if (failure.kind === 'token') return access.need(failure.message);
        this.failure = failure;
        setTimeout(() => signal.aborted || void run(), 1000 * Math.max(RETRY_S, failure.retrySeconds));
      }
    };
    void run();
  }
}

export const source = new KnownSource();
