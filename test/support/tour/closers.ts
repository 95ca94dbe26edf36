/** Closes everything that was started, in reverse order, even if one of them throws. */
export type Closers = {
  readonly add: (close: () => Promise<void>) => void;
  /** Closes each of them once. A second call waits for the first call. */
  readonly closeAll: () => Promise<void>;
};

export function createClosers(): Closers {
  const open: (() => Promise<void>)[] = [];
  let closing: Promise<void> | undefined;

  async function close(): Promise<void> {
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      await next().catch((error: unknown) => console.error('could not be ended:', error));
    }
  }

  return {
    add: closer => {
      open.push(closer);
    },
    closeAll: () => (closing ??= close()),
  };
}
