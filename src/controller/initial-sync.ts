import type { ControlStore } from '../redis/control-store.ts';
import type { Logger } from '../telemetry/log.ts';
import { aborted } from '../time/clock.ts';
import type { Tenants } from './routes/tenants.ts';
import { markApplied, type TermState, type Terms } from './term.ts';

/**
 * The number of tenants that are applied concurrently. This ensures that a tenant that hangs does not block the others.
 */
const TENANTS_AT_ONCE = 16;

/**
 * Applies each tenant once and then marks the control state as ready. A tenant may fail, for example because its shard
 * is not available. In this case, it is enqueued and retried during the term, so that the other tenants are not
 * blocked.
 *
 * @throws if all tenants fail, or if the term has ended
 */
export async function syncEveryTenant(
  deps: {
    readonly terms: Pick<Terms, 'fence'>;
    readonly control: Pick<ControlStore, 'markClusterReady'>;
    readonly tenants: Pick<Tenants, 'sync'>;
    readonly enqueueTenant: (name: string) => void;
    readonly log: Pick<Logger, 'error'>;
  },
  state: TermState,
  names: ReadonlySet<string>,
): Promise<void> {
  const { over } = state;
  const failed = new Map<string, unknown>();
  const rest = [...names].values();

  async function work(): Promise<void> {
    for (const name of rest) {
      if (over.aborted) return;
      try {
        await deps.tenants.sync(name);
        markApplied(state);
      } catch (error) {
        failed.set(name, error);
      }
    }
  }

  await Promise.race([Promise.all(Array.from({ length: TENANTS_AT_ONCE }, work)), aborted(over)]);
  over.throwIfAborted();
  const [first] = failed.values();
  if (failed.size > 0 && failed.size === names.size) throw first;
  await deps.control.markClusterReady(deps.terms.fence());
  over.throwIfAborted();
  markApplied(state);
  for (const [tenant, error] of failed) {
    deps.log.error({ err: error as Error, tenant }, 'a tenant could not be applied, retrying');
    deps.enqueueTenant(tenant);
  }
}
