import type { AccountSpec } from '../../api/kinds/account.ts';
import type { BlockSpec } from '../../api/kinds/block.ts';
import type { CatalogStreamSpec } from '../../api/kinds/catalog-stream.ts';
import type { IntegrationSpec } from '../../api/kinds/integration.ts';
import type { PackageSpec } from '../../api/kinds/package.ts';
import type { SubscriptionSpec } from '../../api/kinds/subscription.ts';
import type { WorkspaceSpec } from '../../api/kinds/workspace.ts';
import type { HeaderField } from '../delivery/header-field.ts';

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
  /** From the status, in ms. When the invitation will expire, and when the integration was accepted. */
  readonly expiresMs?: number;
  readonly acceptedMs?: number;
}

export interface SubscriptionSnapshot extends SnapshotMeta {
  readonly spec: SubscriptionSpec;
  /** From the status, in ms. */
  readonly admittedMs?: number;
  /** Salt of the signing secrets. Absent until it was written, and nothing is sent until then. */
  readonly salt?: string;
  /** Newest version of the secret that has been used to sign, and since when. */
  readonly signedVersion?: number;
  readonly rotatedMs?: number;
  /** When the endpoint was last disabled. */
  readonly disabledMs?: number;
  /** Values of headers from Secrets, in order. Absent if there are none. */
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
  /** Name of the workspace and its namespace. */
  readonly name: string;
  /** Absent if there is no Workspace or it is being deleted, in which case its routing is closed. */
  readonly workspace?: { readonly spec: WorkspaceSpec };
  /** The paying account. Absent if it doesn't exist, and nothing will be routed until it does. */
  readonly account?: {
    readonly plan: AccountSpec['plan'];
    readonly limits?: AccountSpec['limits'];
    /** Whether any queue is waiting for more tokens than are left. */
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
