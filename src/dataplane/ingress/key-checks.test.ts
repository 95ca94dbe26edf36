import { expect, test } from 'vitest';
import { createKeyChecks } from './key-checks.ts';
import { INGRESS_LIMITS } from './limits.ts';
import type { KeysVersion } from './store.ts';

/** Returns the checks of one key, and how often the store was asked for it. */
function checkOneKey() {
  const state = {
    nowMs: 1_000_000,
    suspendedMs: 0,
    asked: 0,
    validMs: Number.POSITIVE_INFINITY,
    seen: undefined as KeysVersion | undefined,
  };
  const checks = createKeyChecks({
    checkKey: async () => {
      state.asked++;
      return state.validMs;
    },
    keysVersion: () => state.seen,
    limits: INGRESS_LIMITS,
    monotonicMs: () => state.nowMs,
    wallMs: () => state.nowMs + state.suspendedMs,
    onFailure: () => {},
  });
  return {
    state,
    /** Reads this version now. */
    see: (version: string) => void (state.seen = { version, requestedMs: state.nowMs }),
    /** Uses the key after this time. Returns whether it is accepted. */
    useAfter: async (ms: number) => {
      state.nowMs += ms;
      return checks.standingOf('ten_a/key') === 'valid' || checks.check('ten_a', 'ten_a/key');
    },
  };
}

test('a key is asked for once as long as no key has changed, and at least every 5 minutes', async () => {
  const { state, see, useAfter } = checkOneKey();
  see('a');
  for (let second = 0; second < 300; second++) {
    if (second % 4 === 0) see('a');
    expect(await useAfter(second === 0 ? 0 : 1_000)).toBe(true);
  }
  expect(state.asked).toBe(1);
  see('a');
  await useAfter(1_000);
  expect(state.asked).toBe(2);
});

test.each<[string, (seen: ReturnType<typeof checkOneKey>) => void]>([
  ['a key has changed', ({ see }) => see('b')],
  ['the data was lost', ({ state }) => void (state.seen = undefined)],
  ['the version was read 5 s ago', () => {}],
])('if %s, a removed key is refused 5 s after it was valid', async (_why, happens) => {
  const checks = checkOneKey();
  const { state, see, useAfter } = checks;
  see('a');
  await useAfter(0);
  state.validMs = 0;
  happens(checks);
  expect(await useAfter(4_999)).toBe(true);
  expect(await useAfter(1)).toBe(false);
});

test('a key that is removed is refused 5 s after the last version without its removal was requested', async () => {
  const { state, see, useAfter } = checkOneKey();
  see('a');
  for (let second = 0; second < 30; second += 5) {
    expect(await useAfter(4_999)).toBe(true);
    state.nowMs++;
    see('a');
  }
  state.validMs = 0;
  expect(await useAfter(4_999)).toBe(true);
  expect(await useAfter(1)).toBe(false);
});

test('if the keys may have changed while a key was checked, it is asked for again', async () => {
  const { state, see, useAfter } = checkOneKey();
  see('a');
  const accepted = useAfter(0);
  see('b');
  expect(await accepted).toBe(true);
  state.nowMs += 4_000;
  see('b');
  state.validMs = 0;
  expect(await useAfter(1_000)).toBe(false);
});

test('a key that was checked before the version was known is asked for again', async () => {
  const { state, see, useAfter } = checkOneKey();
  await useAfter(0);
  see('a');
  state.nowMs += 4_000;
  see('a');
  await useAfter(1_000);
  expect(state.asked).toBe(2);
});

test('a key is refused after its end, even if no key has changed', async () => {
  const { state, see, useAfter } = checkOneKey();
  state.validMs = 7_000;
  see('a');
  expect(await useAfter(0)).toBe(true);
  state.validMs = 0;
  state.nowMs += 5_000;
  see('a');
  expect(await useAfter(1_999)).toBe(true);
  expect(await useAfter(1)).toBe(false);
});

test('a key is refused after its end, even if the machine was suspended in the meantime', async () => {
  const { state, see, useAfter } = checkOneKey();
  state.validMs = 7_000;
  see('a');
  expect(await useAfter(0)).toBe(true);
  state.validMs = 0;
  state.suspendedMs += 6_000;
  expect(await useAfter(999)).toBe(true);
  expect(await useAfter(1)).toBe(false);
});
