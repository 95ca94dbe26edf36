import { withDeadline } from './deadline.ts';

/**
 * Calls `run` for all items at the same time. If one of them fails or takes longer than `deadlineMs`, the others are
 * not affected. A late call isn't stopped, so it must be safe if it has an effect afterwards.
 *
 * @returns the items that failed
 * @throws the first error if all of them failed
 */
export async function tryEach<T>(
  items: readonly T[],
  deadlineMs: number,
  run: (item: T) => Promise<unknown>,
): Promise<readonly T[]> {
  const failed: T[] = [];
  const errors: unknown[] = [];
  const attempt = async (item: T) => {
    try {
      await withDeadline(deadlineMs, () => run(item));
    } catch (error) {
      failed.push(item);
      errors.push(error);
    }
  };
  await Promise.all(items.map(attempt));
  if (errors.length > 0 && errors.length === items.length) throw errors[0];
  return failed;
}
