import type { KubeClient } from '../../kube/client.ts';
import type { SendInvitation } from '../../mail/mailer.ts';
import type { Registry } from '../../telemetry/metrics.ts';
import type { Context } from '../context/context.ts';
import type { DataPlane } from '../context/data-plane.ts';
import type { Controller } from '../engine/keyed-controller.ts';
import type { KindControllerOptions, Reconcilable } from '../engine/kind-controller.ts';

/** Options of the engine that all controllers share. */
type EngineOptions = Required<
  Pick<
    KindControllerOptions<Reconcilable>,
    'name' | 'workers' | 'client' | 'events' | 'clock' | 'log' | 'retry' | 'metrics'
  >
> &
  Pick<KindControllerOptions<Reconcilable>, 'tracing'>;

/** What a kind needs to create its controllers. */
export interface KindParts {
  readonly context: Context;
  readonly dataPlane: Pick<DataPlane, 'source'>;
  readonly client: KubeClient;
  readonly registry: Registry;
  /** Undefined without a mail server: invitations go into Secrets. */
  readonly sendInvitation: SendInvitation | undefined;
  /** Returns the shared options for a controller of that name. */
  readonly engine: (name: string, workers: number) => EngineOptions;
}

/** Creates the controllers of one kind. Each kind's folder has one, in `controller.ts`. */
export type CreateControllers = (parts: KindParts) => readonly Controller[];

/**
 * Workers of kinds whose objects wait for the routes of their tenant. One compilation serves all that wait for it, so
 * 10,000 subscriptions that come together take hundreds of compilations, not thousands.
 */
export const WAITING_WORKERS = 32;
