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

/** The dependencies for creating a kind's controllers. */
export interface KindParts {
  readonly context: Context;
  readonly dataPlane: Pick<DataPlane, 'source'>;
  readonly client: KubeClient;
  readonly registry: Registry;
  /** Undefined if there is no mail server. In this case, invitations are written to Secrets. */
  readonly sendInvitation: SendInvitation | undefined;
  /** The limits for each workspace, by resource. If this is undefined, no quotas are written. */
  readonly workspaceQuota: Readonly<Record<string, string>> | undefined;
  /** Returns the options that are shared, for the controller with this name. */
  readonly engine: (name: string, workers: number) => EngineOptions;
}

/** Creates the controllers for a kind. Each kind implements this in its `controller.ts` file. */
export type CreateControllers = (parts: KindParts) => readonly Controller[];

/**
 * The number of workers for kinds whose objects wait for the routes of their tenant. Since all waiting objects share a
 * single compilation, creating 10,000 subscriptions only requires hundreds of compilations.
 */
export const WAITING_WORKERS = 32;
