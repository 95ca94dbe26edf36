/**
 * Calls `run` for all items in their order, but only for `most` of them at the same time. Rejects if one of the calls
 * rejects, without waiting for the others.
 */
export async function runFewAtOnce<T>(
  items: Iterable<T>,
  most: number,
  run: (item: T) => Promise<unknown>,
): Promise<void> {
  const rest = [...items].values();
  const work = async () => {
    for (const item of rest) await run(item);
  };
  await Promise.all(Array.from({ length: most }, work));
}
