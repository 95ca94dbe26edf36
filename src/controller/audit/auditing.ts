import type { KubeClient } from '../../kube/client.ts';
import type { AnyObject } from '../../kube/object.ts';
import { slimObject } from '../../kube/object.ts';
import { resourceOf } from '../../kube/resource.ts';
import type { StateAudit } from '../../record/control-audit.ts';
import type { ControlStore } from '../../record/control-store.ts';
import type { ControlSweep } from '../../record/control-sweep.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Registry } from '../../telemetry/metrics.ts';
import type { Clock } from '../../time/clock.ts';
import type { Cached, Caches } from '../caches/caches.ts';
import { isPaused } from '../context/paused.ts';
import type { Controllers } from '../engine/controllers.ts';
import type { EventRecorder } from '../engine/event-recorder.ts';
import { pairSelection } from '../kinds/activation/pair-selection.ts';
import type { Tenants } from '../routes/tenants.ts';
import { createAudit } from './audit.ts';
import { createAuditMetrics } from './audit-metrics.ts';
import { type AuditPass, createAuditPass } from './audit-pass.ts';
import type { ComparisonDeps } from './comparison.ts';
import { createGarbageCollector } from './garbage-collector.ts';
import { createPacer } from './pacer.ts';

export interface AuditingDeps extends Pick<ComparisonDeps, 'noteHealths' | 'noteDeliveries'> {
  readonly client: Pick<KubeClient, 'list'>;
  readonly caches: Caches;
  readonly tenants: Tenants;
  readonly control: ControlStore;
  /** Creates a reader for the control state. The reader should wait for `pace` before each command. */
  readonly openAudit: (pace: () => Promise<void>) => StateAudit;
  readonly purger: ControlSweep;
  readonly fence: () => number;
  readonly controllers: Pick<Controllers, 'enqueue' | 'isPending'>;
  /** Called at the end of each pass. */
  readonly onPass: () => void;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly nowMs: () => number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
}

/** Creates the audit and the garbage collection, both of which the leader runs periodically. */
export function createAuditing(deps: AuditingDeps): AuditPass {
  const { client, caches, tenants, control, controllers, nowMs, clock, log } = deps;
  const metrics = createAuditMetrics(deps.registry);
  const pacer = createPacer(clock);
  const store = deps.openAudit(pacer.pace);
  const ofTenant = (name: string): boolean => isPaused(caches, name);
  const enqueueTenant = (name: string): void => controllers.enqueue('routes', name, 'background');

  async function relist(what: 'routes' | 'activations'): Promise<void> {
    const { Activation, signingSecrets: _, invitationSecrets: __, ...others } = caches;
    await Promise.all((what === 'activations' ? [Activation] : Object.values(others)).map(each => each.relist()));
  }

  async function readPair(namespace: string, integration: string, groupKey: string): Promise<Cached<'Activation'>[]> {
    const project = (object: AnyObject) => slimObject(object as Cached<'Activation'>) as Cached<'Activation'>;
    return (await client.list(resourceOf('Activation'), project, pairSelection({ namespace, integration, groupKey })))
      .items;
  }

  return createAuditPass({
    audit: createAudit({
      caches,
      store,
      tenants,
      isPaused: ofTenant,
      enqueueTenant,
      enqueuePair: key => controllers.enqueue('activation', key, 'background'),
      enqueueAccount: name => controllers.enqueue('account', name, 'background'),
      isPairPending: key => controllers.isPending('activation', key),
      isAccountPending: name => controllers.isPending('account', name),
      relist,
      readPair,
      noteHealths: deps.noteHealths,
      noteDeliveries: deps.noteDeliveries,
      events: deps.events,
      metrics,
      log,
    }),
    garbage: createGarbageCollector({
      caches,
      tenants,
      store,
      control,
      purger: deps.purger,
      isPaused: ofTenant,
      fence: deps.fence,
      relist,
      enqueueTenant,
      metrics,
      nowMs,
      log,
    }),
    readTenants: store.readTenants,
    tenants: tenants.names,
    accounts: () => caches.Account.store.keys(),
    onPass: () => {
      pacer.next();
      deps.onPass();
    },
    metrics,
    clock,
    log,
  });
}
