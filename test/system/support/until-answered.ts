import { eventually } from './deadline.ts';

/**
 * Repeats calls until none of their responses is a 503. On a busy machine, a change can take longer than the maximum
 * time that a call waits for it.
 */
export async function untilAllAnswered<T extends readonly { readonly status: number }[]>(
  calls: () => Promise<T>,
): Promise<T> {
  const { value } = await eventually(
    'no response is a 503',
    async () => {
      const replies = await calls();
      return replies.every(({ status }) => status !== 503) && replies;
    },
    { everyMs: 200 },
  );
  return value;
}

/** Repeats a call until its response is not a 503. */
export async function untilAnswered<T extends { readonly status: number }>(call: () => Promise<T>): Promise<T> {
  const [reply] = await untilAllAnswered(async () => [await call()] as const);
  return reply;
}
