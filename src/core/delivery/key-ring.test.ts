import { expect, test } from 'vitest';
import { createKeyRing, keyRingOf } from './key-ring.ts';
import { open, seal, sealedWith } from './seal.ts';

const files = [1, 2, 3].map(n => ({
  name: n === 1 ? 'root.key' : `root.key.${n}`,
  secret: new Uint8Array(32).fill(n),
}));
const [a, b, c] = files.map(({ secret }) => keyRingOf(secret).first());
if (a === undefined || b === undefined || c === undefined) throw new Error('three keys');

test('the newest key is the first until it follows another, and the oldest does not change', () => {
  const ring = createKeyRing(files);
  const names = () => [ring.first(), ring.oldest(), ring.newest()].map(({ name }) => name);
  expect(names()).toEqual(['root.key.3', 'root.key', 'root.key.3']);
  expect(ring.follow(b.fingerprint)).toBe(true);
  expect(names()).toEqual(['root.key.2', 'root.key', 'root.key.3']);
  expect(ring.follow('unknown')).toBe(false);
  expect(names()).toEqual(['root.key.2', 'root.key', 'root.key.3']);
});

test('a key is found by its id; without an id, the oldest key is found', () => {
  const ring = createKeyRing(files);
  expect(ring.key(b.id)?.name).toBe('root.key.2');
  expect(ring.key(undefined)?.name).toBe('root.key');
  expect(ring.key('AAAAAAAAAA')).toBeUndefined();
  expect([ring.has(c.fingerprint), ring.has(c.id)]).toEqual([true, false]);
  expect(a.id).toMatch(/^[\w-]{10}$/);
});

test('values encrypted with any key can be decrypted as long as the ring contains the key', () => {
  const ring = createKeyRing(files.slice(0, 2));
  for (const key of [a, b]) {
    const sealed = seal(key.sealKeys, 'x', 'text');
    expect(sealedWith(sealed)).toBe(key.id);
    expect(open(ring, 'x', sealed).toString()).toBe('text');
  }
  const sealed = seal(c.sealKeys, 'x', 'text');
  expect(() => open(ring, 'x', sealed)).toThrow('SLUICE_ROOT_KEY_FILE');
  ring.replace(files);
  expect(open(ring, 'x', sealed).toString()).toBe('text');
  expect(sealedWith('text')).toBeUndefined();
});

test('new files do not change the first key unless it is missing; then it is replaced by the newest key that was in use', () => {
  const ring = createKeyRing(files.slice(0, 2));
  ring.replace(files);
  expect([ring.first().name, ring.newest().name]).toEqual(['root.key.2', 'root.key.3']);
  ring.replace(files.filter(({ name }) => name !== 'root.key.2'));
  expect(ring.first().name).toBe('root.key');
  expect(() => ring.replace([])).toThrow(RangeError);
});

test('a first key that is changed in place is replaced by an older key, which every replica has', () => {
  const ring = createKeyRing(files);
  const changed = (name: string) => ({ name, secret: new Uint8Array(32).fill(9) });
  ring.replace([...files.slice(0, 2), changed('root.key.3')]);
  expect(ring.first().name).toBe('root.key.2');
  ring.replace([changed('root.key'), ...files.slice(2)]);
  expect(ring.first().name).toBe('root.key');
});

test('the state only changes with the keys and the first key', () => {
  const ring = createKeyRing(files);
  const states = [ring.state()];
  const again = (change: () => void) => {
    change();
    states.push(ring.state());
  };
  again(() => ring.replace(files.map(each => ({ ...each, secret: each.secret.slice() }))));
  again(() => ring.follow(c.fingerprint));
  expect(new Set(states).size).toBe(1);
  again(() => ring.follow(a.fingerprint));
  again(() => ring.replace(files.slice(0, 2)));
  expect(new Set(states).size).toBe(3);
});

test('a retired key is only used for object names: it does not decrypt or verify, and cannot become the first', () => {
  const [oldest, ...newer] = files as [(typeof files)[number], ...typeof files];
  const ring = createKeyRing([{ ...oldest, isRetired: true }, ...newer]);
  expect(ring.oldest().fingerprint).toBe(a.fingerprint);
  expect(ring.all().map(({ name }) => name)).toEqual(['root.key.2', 'root.key.3']);
  expect([ring.key(a.id), ring.key(undefined), ring.find(a.id)]).toEqual([undefined, undefined, undefined]);
  expect([ring.has(a.fingerprint), ring.follow(a.fingerprint)]).toEqual([false, false]);
  expect(ring.first().name).toBe('root.key.3');
  expect(() => open(ring, 'x', seal(a.sealKeys, 'x', 'text'))).toThrow('SLUICE_ROOT_KEY_FILE');
  expect(() => createKeyRing([{ ...oldest, isRetired: true }])).toThrow(RangeError);
});

test('retiring the oldest key does not change the first key or the names, and can be undone', () => {
  const [oldest, ...newer] = files as [(typeof files)[number], ...typeof files];
  const ring = createKeyRing(files);
  ring.follow(b.fingerprint);
  const before = ring.state();
  ring.replace([{ ...oldest, isRetired: true }, ...newer]);
  expect(ring.state()).not.toBe(before);
  expect([ring.first().name, ring.oldest().name, ring.newest().name]).toEqual(['root.key.2', 'root.key', 'root.key.3']);
  const retired = ring.state();
  ring.replace([{ ...oldest, isRetired: true }, ...newer]);
  expect(ring.state()).toBe(retired);
  ring.replace(files);
  expect(ring.key(undefined)?.name).toBe('root.key');
  // As for a removed first key, an older one would be next, but there is none.
  ring.follow(a.fingerprint);
  ring.replace([{ ...oldest, isRetired: true }, ...newer]);
  expect(ring.first().name).toBe('root.key.2');
});
