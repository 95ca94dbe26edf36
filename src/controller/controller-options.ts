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

/** Options of the controller role. */
export interface ControllerOptions {
  readonly client: KubeClient;
  readonly control: ControlStore;
  readonly backlogs: BacklogStore;
  readonly readDeliveries: ReadDeliveries;
  /** Creates a reader of the control state, which awaits `pace` before each command. */
  readonly openAudit: (pace: () => Promise<void>) => ControlAudit;
  readonly purger: ControlSweep;
  readonly queueHints: Pick<HintIndex, 'lower'>;
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  /**
   * Calls back with a slot (`t:ten_…`, `q:ten_…:queue`, `i:int_…`) that another role found without control state, an
   * account (`a:acc_…`) whose shortage of tokens began or ended, an inbox whose endpoint was disabled
   * (`h:int_…/sub_….inc`), or an inbox whose state of deliveries changed (`d:int_…/sub_….inc`).
   */
  readonly onAlarm: (listener: (slot: string) => void) => void;
  readonly onReconnect: (listener: () => void) => void;
  /** Redis's clock, ms. */
  readonly nowMs: () => number;
  readonly rootKey: Uint8Array;
  /** Undefined: no mail server is configured, and invitations go into Secrets. */
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

/** The controller role. */
export interface ControllerRole extends Runtime {
  /** Returns whether this replica leads and applies objects. */
  readonly works: () => boolean;
  /** Reasons why it cannot lead, or cannot work while it leads. */
  readonly impairments: ImpairmentCheck;
}
