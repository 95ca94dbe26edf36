/** What happens to a call: it is done; done, but its answer is lost; not done; or its actor dies before it. */
export type Fate = 'done' | 'answer lost' | 'not done' | 'crash';

export interface Choice {
  readonly actor: string;
  readonly fate: Fate;
}

/**
 * Wraps every call of an actor that is visible to others. Concurrent calls of one actor are processed in sequence, as
 * on one connection.
 */
export type Step = <T>(label: string, call: () => Promise<T>) => Promise<T>;

/**
 * Wraps the calls of a service that are not steps. They run immediately, and all actors wait until they have finished.
 */
export type Aside = <T>(call: () => Promise<T>) => Promise<T>;

interface Named {
  readonly name: string;
  /** Fates besides `done` that its calls may meet. */
  readonly faults: readonly Fate[];
}

export interface Actor extends Named {
  readonly run: (step: Step) => Promise<void>;
}

/** Never ends: it calls when others give it cause to, and rests otherwise. All of its I/O goes through one of both. */
export interface Service extends Named {
  /** Starts the service. Returns a function that ends it once all actors are idle. */
  readonly serve: (step: Step, aside: Aside) => () => void;
}

export type Choose = (options: readonly Choice[], last: string) => Choice;

/** Turns of the event loop without a call, after which services are taken to rest. */
const RESTING_TURNS = 3;

interface Call {
  readonly label: string;
  /** Makes the call; resolves when it is over. */
  readonly make: (fate: Fate) => Promise<void>;
}

/** Runs the actors call by call in the order determined by `choose`. Returns a log for failure reports. */
export async function interleave(actors: readonly (Actor | Service)[], choose: Choose): Promise<readonly string[]> {
  const trace: string[] = [];
  const parked = new Map<string, Call>();
  const waiting = new Map<string, Call[]>(actors.map(({ name }) => [name, []]));
  const arrivals = new Map<string, () => void>();
  const gone = new Set<string>();
  const finished = new Set<string>();
  const served = actors.some(actor => 'serve' in actor);
  let calling: string | undefined;
  let asides = 0;
  let activity = 0;
  let quiet: () => void = () => {};

  function park(name: string): void {
    const call = waiting.get(name)?.shift();
    if (call === undefined) return;
    activity++;
    parked.set(name, call);
    arrivals.get(name)?.();
  }

  function stepOf(name: string): Step {
    return (label, call) =>
      new Promise((resolve, reject) => {
        // Who died makes no more calls.
        if (gone.has(name)) return;
        const make = async (fate: Fate) => {
          if (fate === 'not done') return reject(new Error('not done'));
          try {
            const value = await call();
            if (fate === 'answer lost') reject(new Error('answer lost'));
            else resolve(value);
          } catch (error) {
            reject(error as Error);
          }
        };
        waiting.get(name)?.push({ label, make });
        if (!parked.has(name) && calling !== name) park(name);
      });
  }

  const aside: Aside = async call => {
    asides++;
    try {
      return await call();
    } finally {
      asides--;
      activity++;
      if (asides === 0) quiet();
    }
  };

  /** Waits until all services are idle. */
  async function rest(): Promise<void> {
    for (let turns = 0; served && turns < RESTING_TURNS; ) {
      const before = activity;
      if (asides > 0) await new Promise<void>(resolve => (quiet = resolve));
      await new Promise(resolve => setImmediate(resolve));
      turns = asides > 0 || activity !== before ? 0 : turns + 1;
    }
  }

  /** Runs an actor until its next call or its end. */
  async function until(actor: Actor | Service, go: () => Promise<void> | void): Promise<void> {
    const arrived = new Promise<void>(resolve => arrivals.set(actor.name, resolve));
    await go();
    // Of one that is finished there may be calls that nobody waits for.
    if ('run' in actor && !finished.has(actor.name)) await arrived;
    await rest();
  }

  const ends: (() => void)[] = [];
  for (const actor of actors) {
    const step = stepOf(actor.name);
    await until(actor, () => {
      if ('serve' in actor) {
        ends.push(actor.serve(step, aside));
        return;
      }
      const ended = () => {
        finished.add(actor.name);
        arrivals.get(actor.name)?.();
      };
      actor.run(step).then(ended, error => {
        trace.push(`${actor.name} ends: ${String(error)}`);
        ended();
      });
    });
  }
  for (let last = ''; parked.size > 0; ) {
    const options = actors
      .filter(({ name }) => parked.has(name))
      .flatMap(({ name, faults }) => (['done', ...faults] as const).map(fate => ({ actor: name, fate })));
    const { actor: name, fate } = choose(options, last);
    const { label, make } = parked.get(name) as Call;
    trace.push(`${name} ${label}${fate === 'done' ? '' : `: ${fate}`}`);
    parked.delete(name);
    last = name;
    if (fate === 'crash') {
      gone.add(name);
      continue;
    }
    await until(actors.find(actor => actor.name === name) as Actor | Service, async () => {
      calling = name;
      await make(fate);
      calling = undefined;
      park(name);
    });
  }
  for (const end of ends) end();
  return trace;
}

export interface Bounds {
  readonly preemptions: number;
  readonly faults: number;
  /**
   * Of the schedules with as many pre-emptions and faults as allowed, only so many that each place to leave an actor
   * still meets each call that fails, in one way of failing instead of all. Default: false, all of them.
   */
  readonly pairwise?: boolean;
}

/**
 * Returns every schedule with a limited number of preemptions (switching away from an actor that could continue) and
 * faults, each of them once. A few of them are enough to find most errors, and running all combinations would take too
 * long.
 */
export async function everySchedule(
  { pairwise = false, ...bounds }: Bounds,
  run: (choose: Choose) => Promise<void>,
): Promise<number> {
  const path: { at: number; of: number }[] = [];
  for (let runs = 1; ; runs++) {
    let depth = 0;
    let { preemptions, faults } = bounds;
    /** Of the places of the pre-emptions and the faults, and the kinds of these. */
    let sum = 0;
    await run((options, last) => {
      const canGoOn = options.some(({ actor }) => actor === last);
      const kinds = [...new Set(options.map(({ fate }) => fate))];
      const after = ({ actor, fate }: Choice) => {
        const [preempts, fails] = [canGoOn && actor !== last, fate !== 'done'].map(Number) as [number, number];
        return {
          preemptions: preemptions - preempts,
          faults: faults - fails,
          sum: sum + preempts * depth + fails * (depth + kinds.indexOf(fate)),
          isPlain: preempts + fails === 0,
          // A crashed process cannot be paused again.
          ways: kinds.filter(kind => kind !== 'done' && (fails === 1 || kind !== 'crash')).length,
        };
      };
      const allowed = options.filter(option => {
        const next = after(option);
        if (next.isPlain) return true;
        if (next.preemptions < 0 || next.faults < 0) return false;
        return !pairwise || next.preemptions + next.faults > 0 || next.sum % next.ways === 0;
      });
      const here = (path[depth] ??= { at: 0, of: allowed.length });
      const choice = allowed[here.at] as Choice;
      ({ preemptions, faults, sum } = after(choice));
      depth++;
      return choice;
    });
    path.length = depth;
    while (
      path.length > 0 &&
      (path.at(-1) as { at: number; of: number }).at + 1 >= (path.at(-1) as { of: number }).of
    ) {
      path.pop();
    }
    const last = path.at(-1);
    if (last === undefined) return runs;
    last.at++;
  }
}
