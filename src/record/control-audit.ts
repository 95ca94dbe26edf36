import type { DeliveryFields } from '../core/delivery/delivery-state.ts';
import type { TenantRoutes } from '../core/routing/routes.ts';
import type { RedisClient } from '../redis/client.ts';
import { accountKeys, CLUSTER_KEYS, integrationKeys, tenantKeys } from '../redis/keys.ts';
import type { Fields } from './control-plan.ts';
import { createHashReader, partsOf, readRoutes, type TenantReading } from './control-reader.ts';
import type { OpenKey } from './open-keys.ts';

/** Open group keys that are expected of an integration. */
export interface Probe {
  readonly integration: string;
  readonly groupKeys: readonly string[];
}

export interface Probed {
  /** The number of group keys that it contains. Includes unexpected keys. */
  readonly size: number;
  /** Out of the requested ones. */
  readonly missing: readonly string[];
}

export interface AccountPlan {
  readonly plan: string | undefined;
  readonly included: string | undefined;
}

/** A difference between a part and the routes and activations that it should have. */
export interface PartDifference {
  readonly queue: string;
  readonly what: 'part' | 'part-row' | 'part-endpoint' | 'part-activation' | 'part-list';
  /** The required changes. Identical on each read. */
  readonly detail: string;
  /** Describes a group key that should not be active (`removes`) or should be active, with the integration if known. */
  readonly activation?: {
    readonly integration: string | undefined;
    readonly groupKey: string;
    readonly removes: boolean;
  };
}

/** A part of a stream, using its name in the list of all parts. */
export interface ListedPart {
  readonly tenant: string;
  readonly queue: string;
  readonly gen: string;
  readonly number: number;
}

/** The status data of a subscription that is stored in a part. */
export interface SubscriptionState {
  readonly inc: string;
  readonly deliveries: DeliveryFields;
  /** Undefined if the endpoint is working. */
  readonly health: string | undefined;
}

/** Reads the stream parts. */
export interface PartAudit {
  /**
   * Compares the parts of a tenant with its routes, one at a time.
   *
   * @param openKeys open group keys by integration (`int_…`)
   */
  readonly compare: (
    routes: TenantRoutes,
    openKeys: ReadonlyMap<string, readonly OpenKey[]>,
  ) => AsyncGenerator<readonly PartDifference[]>;
  /** Reads the subscriptions with the given ids (`sub_…`). Only includes subscriptions in a part. */
  readonly readStates: (routes: TenantRoutes) => Promise<ReadonlyMap<string, SubscriptionState>>;
  /** Reads the list of all parts page by page. Some parts may be returned twice. */
  readonly scan: () => AsyncGenerator<readonly ListedPart[]>;
}

/** Reads the controller's record without writing anything. */
export interface ControlAudit {
  readonly readRoutes: (tenant: string, known: readonly TenantRoutes[]) => Promise<TenantReading>;
  /** The names of all data in the index of a tenant. */
  readonly readIndexes: (tenants: readonly string[]) => Promise<ReadonlyMap<string, Fields>>;
  /** Tenants (`ten_…`) that are listed as having control state. */
  readonly readTenants: () => Promise<ReadonlySet<string>>;
  /** Returns the plans in the order of `accounts`. */
  readonly readAccounts: (accounts: readonly string[]) => Promise<AccountPlan[]>;
  /** Returns the results in the order of `probes`, which contain at most 2,000 names in total. */
  readonly probe: (probes: readonly Probe[]) => Promise<Probed[]>;
  /** All open group keys of an integration. Some keys may be included twice. */
  readonly scanActivations: (integration: string) => AsyncGenerator<string[], void, undefined>;
}

/** Reads the record, and the parts that are written together with it. */
export interface StateAudit extends ControlAudit {
  readonly parts: PartAudit;
}

const SCAN_COUNT = 1_000;
/** The number of keys in each probe. */
const PROBES_AT_ONCE = 50;

/** @param pace awaited before each command */
export function createControlAudit(redis: RedisClient, pace: () => Promise<void>): ControlAudit {
  const read = createHashReader(redis, pace);

  async function* scanNames(key: string): AsyncGenerator<string[], void, undefined> {
    let cursor = '0';
    do {
      await pace();
      const [next, flat] = (await redis.call('hscan', key, cursor, 'COUNT', SCAN_COUNT)) as [string, string[]];
      cursor = next;
      const names = flat.filter((_value, i) => i % 2 === 0);
      if (names.length > 0) yield names;
    } while (cursor !== '0');
  }

  return {
    readRoutes: (tenant, known) => readRoutes(read, tenant, known),

    async readIndexes(tenants) {
      const hashes = await read(tenants.map(tenant => tenantKeys(tenant).index));
      return new Map(tenants.map(tenant => [tenant, hashes.get(tenantKeys(tenant).index) ?? {}]));
    },

    async readTenants() {
      await pace();
      return new Set((await redis.call('smembers', CLUSTER_KEYS.tenants)) as string[]);
    },

    async readAccounts(accounts) {
      const keys = accounts.map(account => accountKeys(account).meta);
      const hashes = await read(keys);
      return keys.map(key => {
        const { plan, included } = hashes.get(key) ?? {};
        return { plan, included };
      });
    },

    async probe(probes) {
      const found = new Map<Probe, Probed>();
      for (const part of partsOf(redis, probes, keyOf, PROBES_AT_ONCE)) {
        await pace();
        const args = part.flatMap(({ groupKeys }) => [groupKeys.length, ...groupKeys]);
        const replies = (await redis.run('probe', part.map(keyOf), args)) as number[][];
        for (const [i, probe] of part.entries()) {
          const [size = 0, ...missing] = replies[i] as number[];
          found.set(probe, { size, missing: missing.map(at => probe.groupKeys[at - 1] as string) });
        }
      }
      return probes.map(probe => found.get(probe) as Probed);
    },

    scanActivations: integration => scanNames(integrationKeys(integration).act),
  };
}

function keyOf({ integration }: Probe): string {
  return integrationKeys(integration).act;
}
