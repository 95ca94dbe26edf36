import { expect } from 'vitest';
import type { BlockSpec } from '../../../api/kinds/block.ts';
import type { SubscriptionSpec } from '../../../api/kinds/subscription.ts';
import type { HeaderField } from '../../delivery/header-field.ts';
import { keyRingOf } from '../../delivery/key-ring.ts';
import { publicId, tenantId } from '../../ids/ids.ts';
import { type CompileOptions, compileRoutes } from '../compile-routes.ts';
import type { TenantSnapshot } from '../snapshot.ts';

export const TENANT = 'acme';
export const NOW_MS = 1_000;

/** The short form of a tenant's objects, by name. Omitted fields have their usual value. */
export interface Given {
  readonly workspace?: null | 'held';
  /** Undefined if the object does not exist. */
  readonly account?: { plan: 'Free' | 'Metered'; short?: true };
  readonly streams?: Record<string, { public?: boolean; deleting?: boolean }>;
  readonly packages?: Record<string, { streams: string[]; archived?: true; deleting?: true }>;
  readonly integrations?: Record<string, { workspace?: string; declined?: true; revoked?: true; expiresMs?: number }>;
  /** `<integration> <CatalogStream|Package> <target>`, optionally followed by `SkipToNow`. */
  readonly blocks?: readonly string[];
  readonly subscriptions?: Record<string, SubscriptionGiven>;
}

/** A subscription's short form. */
export interface SubscriptionGiven {
  readonly integration: string;
  readonly stream: string;
  readonly namespace?: string;
  readonly endpoint?: string | null;
  readonly suspended?: true;
  readonly ordering?: 'None';
  readonly createdMs?: number;
  readonly uid?: string;
  readonly deleting?: true;
  readonly admittedMs?: number | null;
  /** The result for a header with a value from a Secret. */
  readonly fromSecret?: HeaderField;
}

type TargetKind = BlockSpec['target']['kind'];

/** The expected routes, in the format of the golden files. */
export interface Then {
  /** The account, or `none` without a payer. */
  readonly payer?: string;
  /** The account's plan. Omitted if the rule does not depend on it. */
  readonly plan?: string;
  readonly queues: Record<string, string>;
  readonly integrations: Record<string, string>;
  readonly routes: Record<string, string>;
  /** Ready, live, and detail, by subscription. */
  readonly verdicts: Record<string, string>;
  /** The subscriptions to which each block applies. Omitted if the rule does not depend on them. */
  readonly blocks?: Record<string, number>;
}

/** Options without side effects. `sealEndpoint` and `openHeader` use readable text instead of encryption. */
export const options: CompileOptions = {
  nowMs: NOW_MS,
  queueMaxBytes: 10,
  judgeEndpoint: url => (url.includes('refused') ? 'refused_by_policy' : 'ok'),
  sealEndpoint: (subscription, { url }) => `sealed ${subscription} ${url}`,
  openHeader: ({ subscription, salt, url }, header, sealed) =>
    sealed === `s2.${subscription}-${salt}-${url}-${header}` ? 'opened' : undefined,
  keys: keyRingOf(new Uint8Array(32)),
};

const HEADERS = [
  { name: 'x-plain', value: 'in the clear' },
  { name: 'Authorization', valueFrom: { secretKeyRef: { name: 'orders-endpoint', key: 'token' } } },
];

function metaOf(name: string, namespace: string, more: { createdMs?: number; uid?: string; deleting?: boolean } = {}) {
  return {
    name,
    namespace,
    uid: more.uid ?? `uid-${name}`,
    createdMs: more.createdMs ?? 1,
    deleting: more.deleting === true,
  };
}

/** Returns the objects of the tenant. */
export function snapshotOf(given: Given): TenantSnapshot {
  const each = <T>(objects: Record<string, T> | undefined) => Object.entries(objects ?? {});
  return {
    name: TENANT,
    ...(given.workspace === undefined ? { workspace: { spec: { account: 'main' } } } : {}),
    ...(given.workspace === 'held' ? { held: true } : {}),
    ...(given.account === undefined
      ? {}
      : { account: { plan: given.account.plan, short: given.account.short === true } }),
    secretKeys: [],
    streams: each(given.streams).map(([name, stream]) => ({
      ...metaOf(name, TENANT, stream),
      spec: { public: stream.public ?? true, retention: '1h', deletionPolicy: 'Retain' },
    })),
    packages: each(given.packages).map(([name, { deleting, ...spec }]) => ({
      ...metaOf(name, TENANT, { deleting: deleting === true }),
      spec,
    })),
    integrations: each(given.integrations).map(([name, { expiresMs, ...spec }]) => ({
      ...metaOf(name, TENANT),
      spec,
      ...(expiresMs === undefined ? {} : { expiresMs }),
    })),
    blocks: (given.blocks ?? []).map((block, i) => {
      const [integration, kind, name, onUnblock] = block.split(' ') as [string, TargetKind, string, 'SkipToNow'?];
      const spec: BlockSpec = { integration, target: { kind, name }, onUnblock: onUnblock ?? 'Continue' };
      return { ...metaOf(`block-${i}`, TENANT), spec };
    }),
    subscriptions: each(given.subscriptions).map(([name, short]) => {
      const { integration, stream, suspended, fromSecret } = short;
      const url = short.endpoint === undefined ? 'https://partner.example/hook' : short.endpoint;
      const spec: SubscriptionSpec = {
        producer: TENANT,
        integration,
        stream,
        ordering: short.ordering ?? 'ByGroupKey',
        deletionPolicy: 'Retain',
        ...(suspended === undefined ? {} : { suspended }),
        ...(url === null ? {} : { endpoint: { url, ...(fromSecret === undefined ? {} : { headers: HEADERS }) } }),
      };
      const admittedMs = short.admittedMs === undefined ? 500 : short.admittedMs;
      return {
        ...metaOf(name, short.namespace ?? 'partner', short),
        spec,
        salt: 'a-salt',
        ...(admittedMs === null ? {} : { admittedMs }),
        ...(fromSecret === undefined ? {} : { headerFields: [fromSecret] }),
      };
    }),
  };
}

/** Returns the compiled routes in the format of the golden files, using names instead of ids. */
export function readable(given: Given): Required<Then> {
  const { routes, verdicts, paused } = compileRoutes(snapshotOf(given), options);
  expect(routes.tenant).toBe(tenantId(TENANT));
  const names = (kind: 'Integration' | 'Subscription', objects: Record<string, { namespace?: string }> | undefined) =>
    new Map(
      Object.entries(objects ?? {}).map(([name, { namespace }]) => [
        publicId(kind, kind === 'Integration' ? TENANT : (namespace ?? 'partner'), name),
        name,
      ]),
    );
  const integrations = names('Integration', given.integrations as Record<string, object>);
  const subscriptions = names('Subscription', given.subscriptions);
  const shown: Record<string, string> = {};
  for (const [int, route] of Object.entries(routes.integrations)) {
    for (const [sub, { queue, route: routing, send, onUnblock, unordered, endpoint }] of Object.entries(
      route.subscriptions,
    )) {
      const extras = [
        ...(onUnblock === 'skip' ? ['then skip'] : []),
        ...(unordered ? ['unordered'] : []),
        ...(endpoint === '' ? ['pull only'] : []),
      ];
      const parts = [`${queue} to ${integrations.get(int)}`, `route ${routing}`, `send ${send}`, ...extras];
      shown[subscriptions.get(sub) ?? sub] = parts.join(', ');
      if (endpoint !== '') expect(endpoint).toBe(`sealed ${sub} https://partner.example/hook`);
    }
  }
  const uids = new Map(
    Object.entries(given.subscriptions ?? {}).map(([name, { uid }]) => [uid ?? `uid-${name}`, name]),
  );
  return {
    payer: routes.payer === '' ? 'none' : routes.payer === publicId('Account', '', 'main') ? 'main' : routes.payer,
    plan: routes.plan,
    queues: Object.fromEntries(Object.entries(routes.queues).map(([name, { state }]) => [name, state])),
    integrations: Object.fromEntries(
      Object.entries(routes.integrations).map(([int, { state }]) => [integrations.get(int) ?? int, state]),
    ),
    routes: shown,
    blocks: Object.fromEntries(
      (given.blocks ?? []).map((block, i) => [block, paused.get(`uid-block-${i}`) ?? 0] as const),
    ),
    verdicts: Object.fromEntries(
      [...verdicts].map(([uid, { ready, live, detail }]) => [
        uids.get(uid) ?? uid,
        [ready, live, ...(detail === undefined ? [] : [detail])].join(' '),
      ]),
    ),
  };
}
