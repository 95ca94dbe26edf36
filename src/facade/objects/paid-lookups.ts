import { AsyncLocalStorage } from 'node:async_hooks';

const calls = new AsyncLocalStorage<() => void>();

/**
 * Runs a call that pays for each id that has to be looked up on the API server.
 *
 * @param charge charges a lookup to the caller. @throws Refusal 429
 */
export function payForLookups<T>(charge: () => void, run: () => Promise<T>): Promise<T> {
  return calls.run(charge, run);
}

/** Charges a lookup to the current call. Does nothing if there is no current call. @throws Refusal 429 */
export function chargeLookup(): void {
  calls.getStore()?.();
}
