/** What has been started and has to be ended: in the reverse order, whatever one of them throws. */
export type Closers = {
  readonly add: (close: () => Promise<void>) => void;
  /** Ends all, once; a second call waits for the first. */
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
