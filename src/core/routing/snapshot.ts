import type { AccountSpec } from '../../api/kinds/account.ts';
import type { BlockSpec } from '../../api/kinds/block.ts';
import type { CatalogStreamSpec } from '../../api/kinds/catalog-stream.ts';
import type { IntegrationSpec } from '../../api/kinds/integration.ts';
import type { PackageSpec } from '../../api/kinds/package.ts';
import type { SubscriptionSpec } from '../../api/kinds/subscription.ts';
import type { WorkspaceSpec } from '../../api/kinds/workspace.ts';
import type { HeaderField } from '../delivery/header-field.ts';
import type { SignedBy } from '../delivery/signing-secret.ts';

/** Metadata needed for the decisions. */
export interface SnapshotMeta {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  /** ms */
  readonly createdMs: number;
  readonly deleting: boolean;
}

export interface StreamSnapshot extends SnapshotMeta {
  readonly spec: CatalogStreamSpec;
}

export interface IntegrationSnapshot extends SnapshotMeta {
  readonly spec: IntegrationSpec;
  /**
   * The times in the status at which the invitation expires and at which the partner accepted the integration, in
   * milliseconds.
   */
  readonly expiresMs?: number;
  readonly acceptedMs?: number;
}

export interface SubscriptionSnapshot extends SnapshotMeta {
  readonly spec: SubscriptionSpec;
  /** The time from the status, in milliseconds. */
  readonly admittedMs?: number;
  /** The salt used for the signing secrets. Absent until it has been written. Before that, no events are sent. */
  readonly salt?: string;
  /**
   * The newest version of the secret that was used for signing, including its root key, the root key of the previous
   * version, and the time.
   */
  readonly signed?: SignedBy;
  readonly rotatedMs?: number;
  /** The time at which the endpoint was disabled most recently. */
  readonly disabledMs?: number;
  /** Header values read from Secrets, in order. Absent if there are no such headers. */
  readonly headerFields?: readonly HeaderField[];
}

export interface PackageSnapshot extends SnapshotMeta {
  readonly spec: PackageSpec;
}

export interface BlockSnapshot extends SnapshotMeta {
  readonly spec: BlockSpec;
}

/** Everything needed to decide a tenant's routes, i.e. the objects in its namespace and all subscriptions to it. */
export interface TenantSnapshot {
  /** The name of the workspace and of its namespace. */
  readonly name: string;
  /**
   * Absent unless the Workspace exists and owns its namespace. If it is absent, the routes of the Workspace are closed
   * unless they are `held`.
   */
  readonly workspace?: { readonly spec: WorkspaceSpec };
  /**
   * True if the workspace exists but does not own its namespace, or if the workspace was deleted just now. The routes
   * of such a workspace are held. No events are accepted or sent. Waiting events are kept.
   */
  readonly held?: true;
  /** The paying account. Absent if there is no Workspace. */
  readonly account?: {
    /** If the account does not exist, this is ''. */
    readonly plan: AccountSpec['plan'] | '';
    readonly limits?: AccountSpec['limits'];
    /** True if a queue is waiting for more tokens than the account has left, or the account does not exist. */
    readonly short: boolean;
  };
  /** SHA-256 (hex) of ingress keys in Secrets. */
  readonly secretKeys: readonly string[];
  readonly streams: readonly StreamSnapshot[];
  readonly packages: readonly PackageSnapshot[];
  readonly integrations: readonly IntegrationSnapshot[];
  readonly blocks: readonly BlockSnapshot[];
  readonly subscriptions: readonly SubscriptionSnapshot[];
}
