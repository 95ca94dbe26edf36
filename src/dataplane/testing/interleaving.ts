/**
 * The fate of a call: the call is done, it is done but its answer is lost, it is not done, or its actor dies before it.
 */
export type Fate = 'done' | 'answer lost' | 'not done' | 'crash';

export interface Choice {
  readonly actor: string;
  readonly fate: Fate;
}

/**
 * Wraps all calls of an actor that are visible to others. Concurrent calls of the same actor are processed in sequence,
 * as they would be on a single connection.
 */
export type Step = <T>(label: string, call: () => Promise<T>) => Promise<T>;

/**
 * Wraps the calls of a service which are not steps. These calls run immediately. All actors wait until they have
 * finished.
 */
export type Aside = <T>(call: () => Promise<T>) => Promise<T>;

interface Named {
  readonly name: string;
  /** The fates that can be used for its calls, in addition to `done`. */
  readonly faults: readonly Fate[];
}

export interface Actor extends Named {
  readonly run: (step: Step) => Promise<void>;
}

/** A service never ends. A service only makes calls that others cause. All of its I/O must use one of these two. */
export interface Service extends Named {
  /** Starts a service. Returns a function which ends it when all actors are idle. */
  readonly serve: (step: Step, aside: Aside) => () => void;
}

export type Choose = (options: readonly Choice[], last: string) => Choice;

/** After this number of turns of the event loop without a call, we assume that a service is idle. */
const RESTING_TURNS = 3;

interface Call {
  readonly label: string;
  /** Makes the call, and resolves when it is done. */
  readonly make: (fate: Fate) => Promise<void>;
}

/**
 * Runs the calls of the actors one after the other. The order is determined by `choose`. Returns a log that can be used
 * to report failures.
 */
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
        // If an actor has died, it does not make any more calls.
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

  /** Waits until all of the services are idle. */
  async function rest(): Promise<void> {
    for (let turns = 0; served && turns < RESTING_TURNS; ) {
      const before = activity;
      if (asides > 0) await new Promise<void>(resolve => (quiet = resolve));
      await new Promise(resolve => setImmediate(resolve));
      turns = asides > 0 || activity !== before ? 0 : turns + 1;
    }
  }

  /** Runs an actor until its next call, or until it has ended. */
  async function until(actor: Actor | Service, go: () => Promise<void> | void): Promise<void> {
    const arrived = new Promise<void>(resolve => arrivals.set(actor.name, resolve));
    await go();
    // If it is finished, there may still be calls that nobody is waiting for.
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
  /**
   * Of the schedules with as many pre-emptions and faults as allowed, only one in this number, spread so that each
   * place still meets others. Default: 1, all of them.
   */
  readonly oneIn?: number;
}

/**
 * Returns all schedules that have a limited number of preemptions (this means switching away from an actor which could
 * continue) and faults. Each schedule is returned once. A small number of them is enough to find most errors, and it
 * would take too long to run all combinations.
 */
export async function everySchedule(
  { pairwise = false, oneIn = 1, ...bounds }: Bounds,
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
          // If a process has crashed, it is not possible to pause it again.
          ways: kinds.filter(kind => kind !== 'done' && (fails === 1 || kind !== 'crash')).length,
        };
      };
      const allowed = options.filter(option => {
        const next = after(option);
        if (next.isPlain) return true;
        if (next.preemptions < 0 || next.faults < 0) return false;
        return next.preemptions + next.faults > 0 || next.sum % (oneIn * (pairwise ? next.ways : 1)) === 0;
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
