/** What happens to a call: it is done; done, but its answer is lost; not done; or its actor dies before it. */
export type Fate = 'done' | 'answer lost' | 'not done' | 'crash';

export interface Choice {
  readonly actor: string;
  readonly fate: Fate;
}

/** Wraps every call of an actor that others may see. One call of an actor is under way at a time. */
export type Step = <T>(label: string, call: () => Promise<T>) => Promise<T>;

export interface Actor {
  readonly name: string;
  readonly run: (step: Step) => Promise<void>;
  /** Fates besides `done` that its calls may meet. */
  readonly faults: readonly Fate[];
}

/** Runs the actors call by call, in the order that `choose` says; answers what happened, for the report of a failure. */
export async function interleave(
  actors: readonly Actor[],
  choose: (options: readonly Choice[], last: string) => Choice,
): Promise<readonly string[]> {
  const trace: string[] = [];
  const parked = new Map<string, { label: string; resume: (fate: Fate) => void }>();
  const arrivals = new Map<string, () => void>();

  /** Lets an actor go on until it stands before its next call, or is finished. */
  async function until(name: string, go: () => void): Promise<void> {
    const arrived = new Promise<void>(resolve => arrivals.set(name, resolve));
    go();
    await arrived;
  }

  for (const actor of actors) {
    const step: Step = (label, call) =>
      new Promise((resolve, reject) => {
        const resume = (fate: Fate) => {
          if (fate === 'not done') return reject(new Error('not done'));
          call().then(value => (fate === 'answer lost' ? reject(new Error('answer lost')) : resolve(value)), reject);
        };
        parked.set(actor.name, { label, resume });
        arrivals.get(actor.name)?.();
      });
    await until(actor.name, () => {
      const ended = () => arrivals.get(actor.name)?.();
      actor.run(step).then(ended, error => {
        trace.push(`${actor.name} ends: ${String(error)}`);
        ended();
      });
    });
  }
  for (let last = ''; parked.size > 0; ) {
    const options = [...parked.keys()].flatMap(name => {
      const faults = actors.find(actor => actor.name === name)?.faults ?? [];
      return (['done', ...faults] as const).map(fate => ({ actor: name, fate }));
    });
    const { actor, fate } = choose(options, last);
    const { label, resume } = parked.get(actor) as { label: string; resume: (fate: Fate) => void };
    trace.push(`${actor} ${label}${fate === 'done' ? '' : `: ${fate}`}`);
    parked.delete(actor);
    last = actor;
    if (fate !== 'crash') await until(actor, () => resume(fate));
  }
  return trace;
}

/**
 * Every schedule with at most so many pre-emptions (an actor is left that could go on) and faults, each once: few of
 * either find what is wrong, and all of them together cannot be run.
 */
export async function everySchedule(
  bounds: { readonly preemptions: number; readonly faults: number },
  run: (choose: (options: readonly Choice[], last: string) => Choice) => Promise<void>,
): Promise<number> {
  const path: { at: number; of: number }[] = [];
  for (let runs = 1; ; runs++) {
    let depth = 0;
    let { preemptions, faults } = bounds;
    await run((options, last) => {
      const canGoOn = options.some(({ actor }) => actor === last);
      const allowed = options.filter(
        ({ actor, fate }) => (!canGoOn || actor === last || preemptions > 0) && (fate === 'done' || faults > 0),
      );
      const here = (path[depth] ??= { at: 0, of: allowed.length });
      depth++;
      const choice = allowed[here.at] as Choice;
      if (canGoOn && choice.actor !== last) preemptions--;
      if (choice.fate !== 'done') faults--;
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
