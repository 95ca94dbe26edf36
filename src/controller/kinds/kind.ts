import type { LimitPolicy } from '../../core/limits/limits.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { SendInvitation } from '../../mail/mailer.ts';
import type { Registry } from '../../telemetry/metrics.ts';
import type { Context } from '../context/context.ts';
import type { DataPlane } from '../context/data-plane.ts';
import type { Controller } from '../engine/keyed-controller.ts';
import type { KindControllerOptions, Reconcilable } from '../engine/kind-controller.ts';

/** Engine options shared by all controllers. */
type EngineOptions = Required<
  Pick<
    KindControllerOptions<Reconcilable>,
    'name' | 'workers' | 'client' | 'events' | 'clock' | 'log' | 'retry' | 'metrics'
  >
> &
  Pick<KindControllerOptions<Reconcilable>, 'confirm' | 'tracing'>;

/** Dependencies needed to create the controllers of a kind. */
export interface KindParts {
  readonly context: Context;
  readonly dataPlane: Pick<DataPlane, 'source'>;
  readonly client: KubeClient;
  readonly registry: Registry;
  /** Undefined without a configured mail server. In this case, invitations are written to Secrets. */
  readonly sendInvitation: SendInvitation | undefined;
  /** Limits for each workspace, by resource. If undefined, no quotas are written. */
  readonly workspaceQuota: Readonly<Record<string, string>> | undefined;
  /** Limits of accounts, by plan, and their ceilings. */
  readonly limitPolicy: LimitPolicy;
  /** Returns the shared options for the named controller. */
  readonly engine: (name: string, workers: number) => EngineOptions;
}

/** Creates the controllers of a kind. Implemented by each kind in its `controller.ts`. */
export type CreateControllers = (parts: KindParts) => readonly Controller[];

/**
 * Number of workers for kinds whose objects wait for their tenant's routes. All waiting objects share one compilation,
 * so creating 10,000 subscriptions together requires hundreds of compilations rather than thousands.
 */
export const WAITING_WORKERS = 32;
