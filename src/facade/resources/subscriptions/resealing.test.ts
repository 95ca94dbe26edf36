import { describe, expect, test } from 'vitest';
import type { EndpointHeader } from '../../../api/endpoint.ts';
import { createHeaderSeals } from '../../../core/delivery/header-seal.ts';
import { createKeyRing } from '../../../core/delivery/key-ring.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Facade } from '../../objects/facade.ts';
import { createResealing } from './resealing.ts';

const CREATED_MS = 1_800_000_000_000;
const url = 'https://ada.example/hook';
const files = ['root.key', 'root.key.2'].map((name, i) => ({ name, secret: new Uint8Array(32).fill(i + 1) }));
const subscription = publicId('Subscription', 'ada', 'orders');
const owner = { subscription, salt: 'a-salt', createdMs: CREATED_MS, url };

/** A facade with a single subscription whose headers are owned by `manager`. */
function start(
  headersOf: (seals: ReturnType<typeof createHeaderSeals>) => readonly EndpointHeader[],
  manager = 'sluice-facade',
) {
  const keys = createKeyRing(files);
  keys.follow(keys.oldest().fingerprint);
  const clock = { ms: CREATED_MS + 3_600_000 };
  const headerSeals = createHeaderSeals(keys, () => clock.ms);
  const fields = { 'f:spec': { 'f:endpoint': { 'f:url': {}, 'f:headers': {} } } };
  const state = {
    object: {
      metadata: {
        name: 'orders',
        namespace: 'ada',
        creationTimestamp: new Date(CREATED_MS).toISOString(),
        managedFields: [{ manager, fieldsV1: fields }],
      },
      spec: { endpoint: { url, timeoutSeconds: 3, headers: headersOf(headerSeals) } },
      status: { signing: { salt: 'a-salt' } },
    },
    applied: [] as { spec: { endpoint: { headers: readonly EndpointHeader[] } }; exactly: boolean }[],
    refused: false,
    reads: 0,
  };
  const facade = {
    keys,
    headerSeals,
    wallMs: () => clock.ms,
    clock: { setTimer: (run: () => void) => (setImmediate(run), () => {}) },
    log: { info: () => {} },
    caches: {
      reflector: () => ({ store: { values: () => [state.object] } }),
      live: async () => {
        state.reads++;
        return state.object;
      },
    },
    writer: {
      edit: (attempt: () => Promise<unknown>) => attempt(),
      apply: async (_kind: string, _name: object, wanted: (typeof state.applied)[number]) => {
        if (state.refused) throw new Refusal('unavailable');
        state.applied.push(wanted);
        const endpoint = { ...state.object.spec.endpoint, headers: wanted.spec.endpoint.headers };
        state.object = { ...state.object, spec: { endpoint } };
      },
    },
  } as unknown as Facade;
  const resealing = createResealing(facade);
  return { keys, clock, state, headerSeals, pass: () => resealing.pass(new AbortController().signal) };
}

const sealedFor =
  (who: Parameters<ReturnType<typeof createHeaderSeals>['seal']>[0]) =>
  (seals: ReturnType<typeof createHeaderSeals>) => [
    { name: 'x-a', valueSealed: seals.seal(who, 'x-a', 'secret') },
    { name: 'x-b', value: 'plain' },
  ];

describe('header values', () => {
  test('are encrypted again once, after another root key has become the first', async () => {
    const { keys, state, headerSeals, pass } = start(sealedFor(owner));
    await pass();
    expect([state.applied, state.reads]).toEqual([[], 0]);
    keys.follow(keys.newest().fingerprint);
    await pass();
    await pass();
    const headers = [
      { name: 'x-a', valueSealed: headerSeals.seal(owner, 'x-a', 'secret') },
      { name: 'x-b', value: 'plain' },
    ];
    expect(state.applied).toMatchObject([{ spec: { endpoint: { url, headers } }, exactly: true }]);
    // The request does not contain fields of other managers.
    expect(state.applied[0]?.spec.endpoint).not.toHaveProperty('timeoutSeconds');
    expect(state.reads).toBe(1);
  });

  test("of a newer root key are kept, so that a facade that receives the key later does not revert another facade's change", async () => {
    const { keys, state, pass } = start(sealedFor(owner));
    keys.follow(keys.newest().fingerprint);
    await pass();
    keys.follow(keys.oldest().fingerprint);
    await pass();
    expect(state.applied).toHaveLength(1);
  });

  test('of a new subscription are bound to its salt as soon as it is certain to have one', async () => {
    const unborn = { ...owner, salt: undefined, createdMs: undefined };
    const { clock, state, headerSeals, pass } = start(() => []);
    clock.ms = CREATED_MS;
    state.object.spec.endpoint.headers = sealedFor(unborn)(headerSeals);
    await pass();
    expect(state.applied).toEqual([]);
    clock.ms = CREATED_MS + 300_000;
    await pass();
    expect(state.object.spec.endpoint.headers[0]?.valueSealed).toBe(headerSeals.seal(owner, 'x-a', 'secret'));
  });

  test.each<[string, Parameters<typeof start>]>([
    ['of another field manager', [sealedFor(owner), 'kubectl']],
    ['that cannot be decrypted', [sealedFor({ ...owner, subscription: 'sub_other' })]],
  ])('%s are not changed', async (_which, args) => {
    const { keys, state, pass } = start(...args);
    keys.follow(keys.newest().fingerprint);
    await pass();
    expect(state.applied).toEqual([]);
  });

  test('of a Subscription that is being deleted are not changed', async () => {
    const { keys, state, pass } = start(sealedFor(owner));
    Object.assign(state.object.metadata, { deletionTimestamp: new Date(CREATED_MS).toISOString() });
    keys.follow(keys.newest().fingerprint);
    await pass();
    expect(state.applied).toEqual([]);
  });

  test('that cannot be written are tried again after ten minutes', async () => {
    const { keys, clock, state, pass } = start(sealedFor(owner));
    keys.follow(keys.newest().fingerprint);
    state.refused = true;
    await pass();
    state.refused = false;
    clock.ms += 599_999;
    await pass();
    expect([state.applied.length, state.reads]).toEqual([0, 1]);
    clock.ms += 1;
    await pass();
    expect(state.applied).toHaveLength(1);
  });
});
