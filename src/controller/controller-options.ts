import type { KeyRing } from '../core/delivery/key-ring.ts';
import type { LimitPolicy } from '../core/limits/limits.ts';
import type { CompileOptions } from '../core/routing/compile-routes.ts';
import type { KubeClient } from '../kube/client.ts';
import type { SendInvitation } from '../mail/mailer.ts';
import type { BacklogStore } from '../plane/backlog.ts';
import type { ReadDeliveries } from '../plane/delivery-reader.ts';
import type { StateAudit } from '../record/control-audit.ts';
import type { ControlStore } from '../record/control-store.ts';
import type { ControlSweep } from '../record/control-sweep.ts';
import type { MailRecord } from '../record/mail-record.ts';
import type { Logger } from '../telemetry/log.ts';
import type { Registry } from '../telemetry/metrics.ts';
import type { ImpairmentCheck } from '../telemetry/role-health.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import type { Clock } from '../time/clock.ts';
import type { OnEventsRemoved } from './context/former-streams.ts';
import type { Runtime } from './engine/runtime.ts';

/** Options for the controller role. */
export interface ControllerOptions {
  readonly client: KubeClient;
  readonly control: ControlStore;
  readonly backlogs: BacklogStore;
  readonly readDeliveries: ReadDeliveries;
  /** Creates a reader for the control state. The reader should wait for `pace` before each command. */
  readonly openAudit: (pace: () => Promise<void>) => StateAudit;
  readonly purger: ControlSweep;
  /**
   * Registers a listener for the alarms of other roles. The listener is called with one of the following values:
   * - Data without control state: a tenant (`t:ten_…`), stream (`q:ten_…:queue`), or integration (`i:int_…`).
   * - An account (`a:acc_…`) if a shortage of tokens began or ended.
   * - An inbox (`h:int_…/sub_….inc`) if its endpoint was disabled.
   * - An inbox (`d:int_…/sub_….inc`) if the state of its deliveries changed.
   */
  readonly onAlarm: (listener: (slot: string) => void) => void;
  readonly onReconnect: (listener: () => void) => void;
  /** Registers the listener for undelivered events of a previous stream that were removed. */
  readonly onEventsRemoved: (listener: OnEventsRemoved) => void;
  /** Current time in milliseconds, according to the Redis clock. */
  readonly nowMs: () => number;
  readonly keys: KeyRing;
  /** Name that this replica reports its root keys with. */
  readonly replica: string;
  /** Returns the root key ids reported by each replica of any role. */
  readonly readRootKeyReports: () => Promise<ReadonlyMap<string, readonly string[]>>;
  /** Undefined if no mail server is configured. In this case, invitations are written to Secrets. */
  readonly sendInvitation: SendInvitation | undefined;
  /** Records the invitations that were sent by email. */
  readonly mails: MailRecord;
  /** The account limits for each plan, and the maximum limits. */
  readonly limits: LimitPolicy;
  readonly compile: Omit<CompileOptions, 'nowMs'>;
  /**
   * ClusterRole to bind in the namespace of each workspace, in order to read the Secrets there. If undefined, the
   * Secrets of the whole cluster can be read.
   */
  readonly secretsRole: string | undefined;
  /** Name of this installation, or `''` for the default one. */
  readonly instance: string;
  /** The limits for each workspace, by resource. If undefined, no quotas are written. */
  readonly workspaceQuota: Readonly<Record<string, string>> | undefined;
  /** Namespace of the Lease. */
  readonly namespace: string;
  /** Identity of this process. Must be unique. */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  readonly tracing?: Tracing | undefined;
}

/** ControllerRole is the interface of the controller role. */
export interface ControllerRole extends Runtime {
  /** Returns true if this replica is the leader and able to apply objects. */
  readonly works: () => boolean;
  /** Returns the id of the Redis that the leader writes to, if another replica leads. */
  readonly leadersStore: () => string | undefined;
  /** Returns the reasons why this replica can't become the leader, or why it can't apply objects as the leader. */
  readonly impairments: ImpairmentCheck;
}
