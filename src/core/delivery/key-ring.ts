import { rootKeyFingerprint } from './root-key-fingerprint.ts';
import { deriveSealKeys, type SealKeys, type SealRing } from './seal.ts';

/** A root key as read from its file. */
export interface RootKeyFile {
  /** Name of the file, e.g. `root.key.2`. */
  readonly name: string;
  readonly secret: Uint8Array;
}

/** A root key and what is derived from it once. */
export interface RootKey extends RootKeyFile {
  /** Shown in statuses and encrypted values. */
  readonly id: string;
  readonly fingerprint: string;
  readonly sealKeys: SealKeys;
}

/**
 * The root keys of an installation. The first key, which the leading controller chooses, signs and encrypts what is
 * new. All keys decrypt and verify.
 */
export interface KeyRing extends SealRing {
  /** The key that signs and encrypts what is new. */
  readonly first: () => RootKey;
  /** The oldest key. Names of objects are derived from it, so that they never change. */
  readonly oldest: () => RootKey;
  readonly newest: () => RootKey;
  /** Oldest first. */
  readonly all: () => readonly RootKey[];
  /** Finds a key by its id. Without an id, returns the oldest key, which was the only one before ids were stored. */
  readonly key: (id: string | undefined) => RootKey | undefined;
  /** An object that is another one after each change of the keys, including a change of the first one. */
  readonly state: () => object;
  /** Makes the key with this fingerprint the first one. Returns false if the ring does not have it. */
  readonly follow: (fingerprint: string) => boolean;
  readonly has: (fingerprint: string) => boolean;
  /** Replaces the keys. If the first one is missing, the newest becomes the first. */
  readonly replace: (files: readonly RootKeyFile[]) => void;
}

interface State {
  readonly keys: readonly RootKey[];
  readonly first: RootKey;
}

function rootKeyOf({ name, secret }: RootKeyFile): RootKey {
  const fingerprint = rootKeyFingerprint(secret);
  const sealKeys = deriveSealKeys(secret);
  return { name, secret, fingerprint, id: sealKeys.id, sealKeys };
}

/** Creates a ring whose newest key is the first one. @param files oldest first, at least one */
export function createKeyRing(files: readonly RootKeyFile[]): KeyRing {
  let state = stateOf(files.map(rootKeyOf), undefined);
  const find = (fingerprint: string) => state.keys.find(key => key.fingerprint === fingerprint);
  const key: KeyRing['key'] = id => (id === undefined ? state.keys[0] : state.keys.find(each => each.id === id));
  return {
    first: () => state.first,
    oldest: () => state.keys[0] as RootKey,
    newest: () => state.keys.at(-1) as RootKey,
    all: () => state.keys,
    key,
    find: id => key(id)?.sealKeys,
    state: () => state,
    has: fingerprint => find(fingerprint) !== undefined,
    follow(fingerprint) {
      const first = find(fingerprint);
      if (first !== undefined && first !== state.first) state = { keys: state.keys, first };
      return first !== undefined;
    },
    replace(next) {
      const keys = next.map(rootKeyOf);
      const same = keys.length === state.keys.length && keys.every((each, i) => isSame(each, state.keys[i]));
      if (!same) state = stateOf(keys, state.first.fingerprint);
    },
  };
}

/** Creates a ring of a single key. */
export function keyRingOf(secret: Uint8Array): KeyRing {
  return createKeyRing([{ name: 'root.key', secret }]);
}

function stateOf(keys: readonly RootKey[], first: string | undefined): State {
  const newest = keys.at(-1);
  if (newest === undefined) throw new RangeError('a key ring must have at least one root key');
  return { keys, first: keys.find(({ fingerprint }) => fingerprint === first) ?? newest };
}

function isSame(a: RootKey, b: RootKey | undefined): boolean {
  return a.name === b?.name && a.fingerprint === b.fingerprint;
}
