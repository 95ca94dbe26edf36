import * as fc from 'fast-check';
import type { RedisClient } from '../../src/redis/client.ts';
import { settleWorld } from './beginning.ts';
import { aCommand } from './commands/every-command.ts';
import { comeToRest, compareWithRebuild } from './rest.ts';
import { createSystem, type System } from './system.ts';

/** Where histories are played, one after the other. */
export interface Stage {
  readonly redis: RedisClient;
  /** Another Redis, where everything is made anew at the end of each history. */
  readonly spare: RedisClient;
}

export interface HistoriesOptions {
  /** Played at once: while one waits for its Redis, another goes on. */
  readonly stages: readonly Stage[];
  /** Steps to make at least, in all histories together. */
  readonly steps: number;
  readonly seed: number;
  /** Of an earlier failure, as it printed it, with its seed: only that history is played. */
  readonly replay?: string | undefined;
  /** False: a counterexample is printed as it was found. */
  readonly shrinks?: boolean;
}

const STEPS_EACH = 120;
const HISTORIES_AT_ONCE = 10;
/** Time that making a counterexample short may take. */
const SHRINK_MS = 60_000;

type Commands = Iterable<fc.AsyncCommand<System, System>>;
type Told = { readonly story: readonly string[]; readonly error: unknown };

/** Plays random histories until so many steps were made, or one of them fails: then its story, shrunk, is printed. */
export async function playHistories(
  options: HistoriesOptions,
): Promise<{ steps: number; failure: string | undefined }> {
  let steps = 0;
  let failure: string | undefined;
  let rounds = 0;

  async function play({ redis, spare }: Stage, commands: Commands, tell: (told: Told) => void): Promise<void> {
    const system = await createSystem(redis);
    try {
      await settleWorld(system);
      const before = system.story.length;
      await fc.asyncModelRun(() => ({ model: system, real: system }), commands);
      steps += system.story.length - before;
      const dump = await comeToRest(system);
      await compareWithRebuild(system, dump, spare);
    } catch (error) {
      tell({ story: system.story, error });
      throw error;
    }
  }

  /** One call of fast-check: some histories of one seed. */
  async function playSome(stage: Stage, seed: number): Promise<void> {
    const [path = '', ...rest] = (options.replay ?? '').split('/');
    const [replayPath, once] = [rest.join('/'), options.replay !== undefined];
    let told: Told | undefined;
    const histories = fc.commands([aCommand], {
      maxCommands: STEPS_EACH,
      size: 'max',
      ...(once ? { replayPath } : {}),
    });
    const property = fc.asyncProperty(histories, commands => play(stage, commands, last => (told = last)));
    const details = await fc.check(property, {
      seed,
      numRuns: HISTORIES_AT_ONCE,
      endOnFailure: options.shrinks === false,
      interruptAfterTimeLimit: SHRINK_MS + 50 * STEPS_EACH * HISTORIES_AT_ONCE,
      ...(once ? { path } : {}),
    });
    if (!details.failed || failure !== undefined) return;
    const shortest = /replayPath="([^"]*)"/.exec(fc.stringify(details.counterexample?.[0]))?.[1] ?? '';
    failure = tellFailure(details.seed, `${details.counterexamplePath}/${shortest}`, told);
  }

  await Promise.all(
    options.stages.map(async stage => {
      while (steps < options.steps && failure === undefined) {
        if (options.replay !== undefined && rounds > 0) return;
        await playSome(stage, options.seed + rounds++);
      }
    }),
  );
  return { steps, failure };
}

function tellFailure(seed: number, replay: string, told: Told | undefined): string {
  const lines = told?.story.map(line => `  ${line}`) ?? [];
  const error = told?.error instanceof Error ? (told.error.stack ?? told.error.message) : String(told?.error);
  return ['after', ...lines, error, `again: make test-model SEED=${seed} REPLAY='${replay}'`].join('\n');
}
