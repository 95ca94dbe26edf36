import type { CompileOptions } from '../core/routing/compile-routes.ts';
import type { KubeClient } from '../kube/client.ts';
import type { SendInvitation } from '../mail/mailer.ts';
import type { BacklogStore } from '../redis/backlog.ts';
import type { ControlAudit } from '../redis/control-audit.ts';
import type { ControlStore } from '../redis/control-store.ts';
import type { ControlSweep } from '../redis/control-sweep.ts';
import type { ReadDeliveries } from '../redis/delivery-reader.ts';
import type { HintIndex } from '../redis/hints.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Registry } from '../telemetry/metrics.ts';
import type { ImpairmentCheck } from '../telemetry/role-health.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { Clock } from '../time/clock.ts';
import type { Runtime } from './engine/runtime.ts';

/** What the controller role works with. */
export interface ControllerOptions {
  readonly client: KubeClient;
  readonly control: ControlStore;
  readonly backlogs: BacklogStore;
  readonly readDeliveries: ReadDeliveries;
  /** A reader of the control state; `pace` is awaited before each of its commands. */
  readonly openAudit: (pace: () => Promise<void>) => ControlAudit;
  readonly remains: ControlSweep;
  readonly queueHints: Pick<HintIndex, 'lower'>;
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  /**
   * Calls back with the slot (`t:ten_…`, `q:ten_…:queue`, `i:int_…`) that another role found without control state, or the
   * account (`a:acc_…`) whose tokens are spent, or are not any more; or with the inbox whose endpoint was disabled
   * (`h:int_…/sub_….inc`) or whose deliveries go differently (`d:int_…/sub_….inc`).
   */
  readonly onAlarm: (listener: (slot: string) => void) => void;
  readonly onReconnect: (listener: () => void) => void;
  /** Redis's clock, ms. */
  readonly nowMs: () => number;
  readonly rootKey: Uint8Array;
  /** Undefined: there is no mail server, invitations go into Secrets. */
  readonly sendInvitation: SendInvitation | undefined;
  readonly compile: Omit<CompileOptions, 'nowMs'>;
  /** Namespace of the Lease. */
  readonly namespace: string;
  /** Unique to this process. */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  readonly tracing?: Tracing | undefined;
}

/** The controller role as the process sees it. */
export interface ControllerRole extends Runtime {
  /** Whether this replica leads and brings objects into force. */
  readonly works: () => boolean;
  /** What keeps it from leading, or from working while it leads. */
  readonly impairments: ImpairmentCheck;
}
