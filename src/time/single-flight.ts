interface Flight<T> {
  readonly ended: Promise<void>;
  /** The run after the current run, if a caller is waiting for it. */
  next?: Promise<T>;
}

/**
 * Returns a function that only runs one task at a time for each key. Calls made during a run share the next run. Such a
 * call can't use the current run because the run may have started before a change that the caller knows of. Each key
 * has at most one running and one waiting task.
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
