import { afterAll, beforeAll } from 'vitest';
import type { Sluice, SluiceRole } from '../../support/sluice.ts';
import { type Installation, install } from './installation.ts';
import type { Publisher } from './publisher.ts';
import { type Running, settle } from './small-world.ts';

export const ROLES = ['controller', 'ingress', 'dispatcher'] as const satisfies readonly SluiceRole[];

/** A small world and the processes that serve it. */
export interface ServedWorld extends Installation, Running {
  /** The process of `all`, or the process of ingress if each role has a separate process. */
  readonly sluice: Sluice;
  /** The process of each role, by role. Empty if a single process runs all roles. */
  readonly processes: ReadonlyMap<string, Sluice>;
  /** Publishes events using ingress. */
  readonly publisher: Publisher;
}

/** Installs Sluice with a small world before the tests of a file, and removes both after them. */
export function useSmallWorld(options: {
  readonly partners: readonly string[];
  readonly groupKeys: readonly string[];
  readonly endpoint?: object;
  readonly controllerManager?: boolean;
  /** Set to true to run each role in a separate process, or `as one` if `sluice` represents all of them. */
  readonly separateRoles?: boolean | 'as one';
}): ServedWorld {
  const processes = new Map<string, Sluice>();
  const world = {} as ServedWorld;
  beforeAll(async () => {
    const installed = await install(options);
    Object.assign(world, installed, { processes });
    if (options.separateRoles === true) for (const role of ROLES) processes.set(role, await installed.start({ role }));
    const start = options.separateRoles === 'as one' ? installed.startRoles : installed.start;
    const sluice = processes.get('ingress') ?? (await start());
    const running = await settle(installed, options);
    Object.assign(world, running, { sluice, publisher: running.publisherOf(sluice) });
  });
  // If the setup failed, some of these are undefined.
  afterAll(async () => {
    const { close, stop }: Partial<ServedWorld> = world;
    await close?.();
    await stop?.();
  });
  return world;
}
