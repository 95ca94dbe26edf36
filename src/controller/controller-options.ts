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

/** The options of the controller role. */
export interface ControllerOptions {
  readonly client: KubeClient;
  readonly control: ControlStore;
  readonly backlogs: BacklogStore;
  readonly readDeliveries: ReadDeliveries;
  /** Creates a reader of the control state. The reader waits for `pace` before each command. */
  readonly openAudit: (pace: () => Promise<void>) => ControlAudit;
  readonly purger: ControlSweep;
  readonly queueHints: Pick<HintIndex, 'lower'>;
  readonly inboxHints: Pick<HintIndex, 'lower'>;
  /**
   * Registers a listener for the alarms of other roles. The listener is called with one of the following values:
   * - A slot (`t:ten_…`, `q:ten_…:queue`, `i:int_…`) that was found without control state.
   * - An account (`a:acc_…`) if a shortage of tokens began or ended.
   * - An inbox (`h:int_…/sub_….inc`) if its endpoint was disabled.
   * - An inbox (`d:int_…/sub_….inc`) if the state of its deliveries changed.
   */
  readonly onAlarm: (listener: (slot: string) => void) => void;
  readonly onReconnect: (listener: () => void) => void;
  /** The time according to the clock of Redis, in milliseconds. */
  readonly nowMs: () => number;
  readonly rootKey: Uint8Array;
  /** Undefined if no mail server is configured. In this case, invitations are written to Secrets. */
  readonly sendInvitation: SendInvitation | undefined;
  readonly compile: Omit<CompileOptions, 'nowMs'>;
  /** The namespace of the Lease. */
  readonly namespace: string;
  /** The identity of this process, which must be unique. */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  readonly tracing?: Tracing | undefined;
}

/** ControllerRole is the interface of the controller role. */
export interface ControllerRole extends Runtime {
  /** Returns true if this replica is the leader and can apply objects. */
  readonly works: () => boolean;
  /** Returns the reasons why this replica cannot become the leader, or cannot apply objects while it is the leader. */
  readonly impairments: ImpairmentCheck;
}
