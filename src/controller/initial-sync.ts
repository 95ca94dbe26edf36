import { tenantId } from '../core/ids/ids.ts';
import { isStale } from '../kube/kube-error.ts';
import type { ControlStore } from '../record/control-store.ts';
import type { Logger } from '../telemetry/log.ts';
import { aborted } from '../time/clock.ts';
import { runFewAtOnce } from '../time/few-at-once.ts';
import { SecretsUnreadableError } from './engine/outcome.ts';
import type { Tenants } from './routes/tenants.ts';
import { markApplied, type TermState, type Terms } from './term.ts';

/** The number of tenants to apply concurrently so that a single hanging tenant doesn't block the rest. */
const TENANTS_AT_ONCE = 16;

/**
 * Applies each tenant a single time. After that, the control state is marked as ready. Individual tenants may fail,
 * e.g. because their shard is unavailable. Such tenants are enqueued and retried during the term, so that they do not
 * block the others.
 *
 * @throws if all tenants fail, or if the term has ended
 */
export async function syncEveryTenant(
  deps: {
    readonly terms: Pick<Terms, 'fence'>;
    readonly control: Pick<ControlStore, 'enlist' | 'markClusterReady'>;
    readonly tenants: Pick<Tenants, 'sync'>;
    readonly enqueueTenant: (name: string) => void;
    readonly log: Pick<Logger, 'info' | 'error'>;
  },
  state: TermState,
  names: ReadonlySet<string>,
): Promise<void> {
  const { over } = state;
  const failed = new Map<string, unknown>();

  async function sync(name: string): Promise<void> {
    if (over.aborted) return;
    try {
      await deps.tenants.sync(name);
      markApplied(state);
    } catch (error) {
      failed.set(name, error);
    }
  }

  await Promise.race([runFewAtOnce(names, TENANTS_AT_ONCE, sync), aborted(over)]);
  over.throwIfAborted();
  // Unreadable Secrets of a tenant do not indicate a problem with Redis.
  const isUnread = (error: unknown) => isStale(error) || error instanceof SecretsUnreadableError;
  const ofRedis = [...failed.values()].filter(error => !isUnread(error));
  if (ofRedis.length > 0 && failed.size === names.size) throw ofRedis[0];
  // List the workspaces that failed. If Redis has lost its data, ingress would otherwise refuse their keys instead of
  // asking producers to send the event again.
  for (const [name, error] of failed) {
    if (isUnread(error)) await deps.control.enlist(deps.terms.fence(), tenantId(name));
  }
  await deps.control.markClusterReady(deps.terms.fence());
  over.throwIfAborted();
  markApplied(state);
  if (failed.size === 0) deps.log.info({ workspaces: names.size }, 'applied all workspaces');
  for (const [tenant, error] of failed) {
    deps.log.error({ err: error as Error, tenant }, 'failed to apply a workspace, retrying');
    deps.enqueueTenant(tenant);
  }
}
