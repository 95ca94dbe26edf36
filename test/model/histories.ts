import * as fc from 'fast-check';
import type { RedisClient } from '../../src/redis/client.ts';
import { settleWorld } from './beginning.ts';
import { aCommand } from './commands/every-command.ts';
import type { Pushes } from './processes/pushes.ts';
import { comeToRest, compareWithRebuild } from './rest.ts';
import { createSystem, type System } from './system.ts';

/** A place in which histories are played sequentially. */
export interface Stage {
  readonly redis: RedisClient;
  /** The pushes sent in this place. */
  readonly pushes: Pushes;
  /** A second Redis, in which everything is recreated at the end of each history. */
  readonly spare: RedisClient;
}

export interface HistoriesOptions {
  /** Histories are played concurrently: while one of them waits for its Redis, another one continues. */
  readonly stages: readonly Stage[];
  /** The minimum number of steps in all histories together. */
  readonly steps: number;
  readonly seed: number;
  /** A history printed by an earlier failure, including its seed. In this case, only this history is played. */
  readonly replay?: string | undefined;
  /** Set to false to print a counterexample as it was found. */
  readonly shrinks?: boolean;
}

const STEPS_EACH = 120;
const HISTORIES_AT_ONCE = 10;
/** The difference between the seeds of one run, so that runs with similar seeds play different histories. */
const SEEDS_APART = 1_000;
/** The time for shrinking a counterexample, in milliseconds. */
const SHRINK_MS = 60_000;

type Commands = Iterable<fc.AsyncCommand<System, System>>;
type Told = { readonly story: readonly string[]; readonly error: unknown };

/**
 * Plays random histories until the given number of steps has been made, or one of them fails. A failing history is
 * shrunk and printed.
 */
export async function playHistories(
  options: HistoriesOptions,
): Promise<{ steps: number; failure: string | undefined }> {
  const once = options.replay !== undefined;
  const stages = once ? options.stages.slice(0, 1) : options.stages;
  const stepsEach = options.steps / stages.length;
  let steps = 0;
  let failure: string | undefined;

  /** Returns the number of steps. */
  async function play(stage: Stage, commands: Commands, tell: (reported: Told) => void): Promise<number> {
    const system = await createSystem(stage);
    try {
      await settleWorld(system);
      const before = system.story.length;
      await fc.asyncModelRun(() => ({ model: system, real: system }), commands);
      const made = system.story.length - before;
      const dump = await comeToRest(system);
      await compareWithRebuild(system, dump, stage.spare);
      return made;
    } catch (error) {
      tell({ story: system.story, error });
      throw error;
    }
  }

  /**
   * Runs fast-check once: plays some histories of one seed until `most` steps were made. Returns the number of steps.
   */
  async function playSome(stage: Stage, seed: number, most: number): Promise<number> {
    const [path = '', ...rest] = (options.replay ?? '').split('/');
    const replayPath = rest.join('/');
    let made = 0;
    let reported: Told | undefined;
    const histories = fc.commands([aCommand], {
      maxCommands: STEPS_EACH,
      size: 'max',
      ...(once ? { replayPath } : {}),
    });
    const property = fc.asyncProperty(histories, async commands => {
      // A failing history is played repeatedly while it is being shrunk.
      if (made < most || reported !== undefined) made += await play(stage, commands, last => (reported = last));
    });
    const details = await fc.check(property, {
      seed,
      numRuns: once ? 1 : HISTORIES_AT_ONCE,
      endOnFailure: options.shrinks === false,
      interruptAfterTimeLimit: SHRINK_MS + 50 * STEPS_EACH * HISTORIES_AT_ONCE,
      ...(once ? { path } : {}),
    });
    if (!details.failed || failure !== undefined) return made;
    const shortest = /replayPath="([^"]*)"/.exec(fc.stringify(details.counterexample?.[0]))?.[1] ?? '';
    failure = tellFailure(details.seed, `${details.counterexamplePath}/${shortest}`, {
      story: reported?.story ?? [],
      error: reported?.error ?? details.errorInstance,
    });
    return made;
  }

  await Promise.all(
    stages.map(async (stage, first) => {
      // It uses separate seeds so that the played histories do not depend on the speed of other workers.
      let made = 0;
      for (let round = first; made < stepsEach && failure === undefined; round += stages.length) {
        made += await playSome(stage, options.seed + round * SEEDS_APART, stepsEach - made);
        if (once) break;
      }
      steps += made;
    }),
  );
  return { steps, failure };
}

function tellFailure(seed: number, replay: string, reported: Told): string {
  const lines = reported.story.map(line => `  ${line}`);
  const error =
    reported.error instanceof Error ? (reported.error.stack ?? reported.error.message) : String(reported.error);
  return ['after', ...lines, error, `again: make test-model SEED=${seed} REPLAY='${replay}'`].join('\n');
}
