/** Counts the turns of the event loop until the promise has settled, even if it rejects. */
export async function turnsOf(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let ended = false;
  const next = () => {
    turns++;
    if (!ended) setImmediate(next);
  };
  setImmediate(next);
  await work.catch(() => {}).finally(() => (ended = true));
  return turns;
}
