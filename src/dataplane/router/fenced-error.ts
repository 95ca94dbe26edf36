/** Thrown when another router took the queue over: nothing more may be written for it. */
export class FencedError extends Error {
  override readonly name = 'FencedError';
}
