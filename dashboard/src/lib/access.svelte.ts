// Whether a reader's token is wanted.

import { token, useToken } from './api';

class Access {
  isNeeded = $state(false);
  message = $state('');
  /** Counts up when it makes sense to ask again. */
  attempt = $state(0);

  need(message: string): void {
    // A token that was shown is wrong, or no longer valid.
    this.message = token() ? 'The collector does not accept this token.' : message;
    this.isNeeded = true;
  }

  show(text: string): void {
    useToken(text.trim());
    this.attempt += 1;
  }

  forget(): void {
    useToken(null);
    this.attempt += 1;
  }
}

export const access = new Access();
