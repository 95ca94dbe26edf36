interface Flight<T> {
  readonly ended: Promise<void>;
  /** The run after this one, if a caller waits for it. */
  next?: Promise<T>;
}

/**
 * Returns a function that runs one task at a time for each key. Calls during a run share the run after it, never the
 * running one: that may have looked before a change that the caller knows of. So an answer is never older than the
 * question, and each key has at most one task running and one waiting.
 */
export function createSingleFlight<T>(): (key: string, run: () => Promise<T>) => Promise<T> {
  const flights = new Map<string, Flight<T>>();

  function start(key: string, run: () => Promise<T>): Promise<T> {
    const result = (async () => run())();
    const end = () => {
      if (flight.next === undefined) flights.delete(key);
    };
    const flight: Flight<T> = { ended: result.then(end, end) };
    flights.set(key, flight);
    return result;
  }

  return (key, run) => {
    const flight = flights.get(key);
    if (flight === undefined) return start(key, run);
    flight.next ??= flight.ended.then(() => start(key, run));
    return flight.next;
  };
}
