import type { RedisClient } from '../../../src/redis/client.ts';
import type { Objects } from '../state/objects.ts';
import type { ModelTenant } from '../state/tenant.ts';
import { type Controller, createController } from './controller.ts';
import { createProcess, type Death, type Process } from './process.ts';

export interface LeadershipDeps {
  readonly redis: RedisClient;
  readonly objects: Objects;
  readonly nowMs: () => number;
  readonly tenants: readonly ModelTenant[];
  readonly say: (text: string) => void;
  /** Unfinished work of other processes is completed. */
  readonly onLed: () => void;
}

/** Controllers that become the leader one after another. A crashed controller is replaced when required. */
export function createLeadership({ redis, objects, nowMs, tenants, say, onLed }: LeadershipDeps) {
  const names = tenants.map(({ name }) => name);
  let leading: { readonly process: Process; readonly work: Controller } | undefined;

  /** A leader that has completed the unfinished work of others, or undefined if it has crashed. */
  async function lead(death?: Death): Promise<Controller | undefined> {
    if (leading !== undefined) return leading.work;
    const process = createProcess(redis);
    const work = await createController(process.redis, objects, nowMs);
    for (const tenant of tenants) tenant.begin();
    if (!(await process.live(() => work.lead(names), death))) return undefined;
    for (const tenant of tenants) tenant.commit();
    leading = { process, work };
    onLed();
    return work;
  }

  return {
    lead,
    /** Lets the controller continue, without knowing that another controller has already done the work. */
    takeOver: (): void => {
      leading = undefined;
    },
    isLed: () => leading !== undefined,
    current: (): Controller | undefined => leading?.work,

    /** Applies objects of the tenants. A new controller does this when it starts. Returns false if it crashed. */
    async settle(
      concerned: readonly ModelTenant[],
      run: (work: Controller) => Promise<void>,
      death: Death | undefined,
    ): Promise<boolean> {
      if (leading === undefined) {
        if ((await lead(death)) !== undefined) return true;
        say('— the new controller died');
        return false;
      }
      const { process, work } = leading;
      for (const tenant of concerned) tenant.begin();
      const done = await process.live(() => run(work), death);
      if (done) for (const tenant of concerned) tenant.commit();
      else {
        leading = undefined;
        say('— the controller died');
      }
      return done;
    },
  };
}
