import type { KubeClient } from '../../kube/client.ts';
import type { SendInvitation } from '../../mail/mailer.ts';
import type { Registry } from '../../telemetry/metrics.ts';
import type { Context } from '../context/context.ts';
import type { DataPlane } from '../context/data-plane.ts';
import type { Controller } from '../engine/keyed-controller.ts';
import type { KindControllerOptions, Reconcilable } from '../engine/kind-controller.ts';

/** The options of the engine that are shared by all controllers. */
type EngineOptions = Required<
  Pick<
    KindControllerOptions<Reconcilable>,
    'name' | 'workers' | 'client' | 'events' | 'clock' | 'log' | 'retry' | 'metrics'
  >
> &
  Pick<KindControllerOptions<Reconcilable>, 'tracing'>;

/** The dependencies that are needed to create the controllers of a kind. */
export interface KindParts {
  readonly context: Context;
  readonly dataPlane: Pick<DataPlane, 'source'>;
  readonly client: KubeClient;
  readonly registry: Registry;
  /** Undefined if no mail server is configured. In this case, invitations are written to Secrets. */
  readonly sendInvitation: SendInvitation | undefined;
  /** Returns the shared options for the controller with the given name. */
  readonly engine: (name: string, workers: number) => EngineOptions;
}

/** Creates the controllers of a kind. Each kind implements this function in `controller.ts`. */
export type CreateControllers = (parts: KindParts) => readonly Controller[];

/**
 * The number of workers for kinds with objects that wait for the routes of their tenant. All objects that are waiting
 * share one compilation. If 10,000 subscriptions are created together, this requires hundreds of compilations instead
 * of thousands.
 */
export const WAITING_WORKERS = 32;
