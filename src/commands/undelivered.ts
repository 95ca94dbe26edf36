import { tenantId } from '../core/ids/ids.ts';
import { readPart } from '../part/inbox/find-part.ts';
import { createDrain } from '../part/sweep/drain.ts';
import { createControlAudit } from '../record/control-audit.ts';
import type { RedisClient } from '../redis/client.ts';
import type { RedisSettings } from '../redis/connection/redis-settings.ts';
import { openRedis } from '../redis/late-client.ts';
import type { Logger } from '../telemetry/log.ts';
import { DeadlineError, withDeadline } from '../time/deadline.ts';
import { type HeldObject, type Undelivered, undeliveredByStatus } from './uninstall-plan.ts';

/** Time to wait for Redis, in milliseconds. */
const REDIS_WITHIN_MS = 15_000;

/**
 * Looks for streams with undelivered events. Falls back to the statuses if Redis does not respond.
 *
 * @param settings undefined if they are invalid. In this case, `problems` contains the reason
 */
export async function findUndelivered(
  objects: readonly HeldObject[],
  settings: (RedisSettings & { readonly instance: string }) | undefined,
  problems: readonly string[],
  log: Logger,
): Promise<Undelivered> {
  const byStatus = (redisProblem: string) => ({ streams: undeliveredByStatus(objects), redisProblem });
  if (settings === undefined) return byStatus(problems.join(' '));
  const redis = openRedis({ ...settings, log });
  try {
    await withDeadline(REDIS_WITHIN_MS, () => redis.opened);
    return { streams: await readUndelivered(redis.client, workspacesOf(objects)) };
  } catch (error) {
    const isLate = error instanceof DeadlineError;
    return byStatus(
      isLate
        ? redis
            .waiting()
            .map(each => each.message)
            .join(' ')
        : (error as Error).message,
    );
  } finally {
    await redis.close();
  }
}

/** Returns the names of all workspaces, by their id (`ten_…`). Required because Redis only contains the ids. */
function workspacesOf(objects: readonly HeldObject[]): ReadonlyMap<string, string> {
  const names = objects.flatMap(({ kind, metadata, spec }) => {
    if (kind === 'Workspace') return [metadata.name];
    return [metadata.namespace, spec?.producer].filter(name => name !== undefined);
  });
  return new Map(names.map(name => [tenantId(name), name]));
}

/** Returns all streams which have events that have not been routed or have subscriptions with undelivered events. */
async function readUndelivered(redis: RedisClient, workspaces: ReadonlyMap<string, string>): Promise<string[]> {
  const audit = createControlAudit(redis, () => Promise.resolve());
  const drain = createDrain(redis);
  const streams: string[] = [];
  for (const [tenant, index] of await audit.readIndexes([...(await audit.readTenants())])) {
    for (const entry of Object.keys(index)) {
      if (!entry.startsWith('q:')) continue;
      const queue = entry.slice('q:'.length);
      const part = await readPart(redis, tenant, queue);
      if (part === undefined) continue;
      const { unrouted, open } = await drain.read(part);
      if (unrouted + open > 0) streams.push(`${workspaces.get(tenant) ?? tenant}/${queue}`);
    }
  }
  return streams.toSorted();
}
