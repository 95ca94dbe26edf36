import { rootKeyFingerprint } from './root-key-fingerprint.ts';
import { deriveSealKeys, type SealKeys, type SealRing } from './seal.ts';

/** A root key as read from its file. */
export interface RootKeyFile {
  /** Name of the file, e.g. `root.key.2`. */
  readonly name: string;
  readonly secret: Uint8Array;
  /** True if the key only names objects. Only the oldest key can be retired. */
  readonly isRetired?: boolean;
}

/** A root key and the values derived from it. */
export interface RootKey extends Omit<RootKeyFile, 'isRetired'> {
  /** Shown in statuses and encrypted values. */
  readonly id: string;
  readonly fingerprint: string;
  readonly sealKeys: SealKeys;
}

/**
 * An installation's root keys. The first key is selected by the leading controller and is used to sign and encrypt
 * new values. All keys decrypt and verify, except for the oldest one after it has been retired.
 */
export interface KeyRing extends SealRing {
  /** The key for signing and encrypting new values. */
  readonly first: () => RootKey;
  /** The oldest key, even if it is retired. Object names are derived from this key, so they never change. */
  readonly oldest: () => RootKey;
  readonly newest: () => RootKey;
  /** All keys that decrypt and verify, oldest first. */
  readonly all: () => readonly RootKey[];
  /**
   * Finds a key of {@link all} by its id. Without an id, this returns the oldest key, which was the only key in earlier
   * versions, unless it is retired.
   */
  readonly key: (id: string | undefined) => RootKey | undefined;
  /** An object that is replaced whenever the keys change, including a change of the first key. */
  readonly state: () => object;
  /** Makes the key with this fingerprint the first one. Returns false if the ring does not contain this key. */
  readonly follow: (fingerprint: string) => boolean;
  readonly has: (fingerprint: string) => boolean;
  /**
   * Replaces the keys. If the first key is missing, it is replaced with the newest key that was in use before because
   * other replicas may not have a key that was never in use.
   */
  readonly replace: (files: readonly RootKeyFile[]) => void;
}

/** The keys of all files, oldest first. */
interface Files {
  readonly all: readonly RootKey[];
  /** True if the oldest one is retired. */
  readonly isRetired: boolean;
}

interface State extends Files {
  /** Without a retired key. */
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
  let state = stateOf(keysOf(files), []);
  const find = (fingerprint: string) => state.keys.find(key => key.fingerprint === fingerprint);
  const oldest = () => state.all[0] as RootKey;
  const key: KeyRing['key'] = (id = oldest().id) => state.keys.find(each => each.id === id);
  return {
    first: () => state.first,
    oldest,
    newest: () => state.keys.at(-1) as RootKey,
    all: () => state.keys,
    key,
    find: id => key(id)?.sealKeys,
    state: () => state,
    has: fingerprint => find(fingerprint) !== undefined,
    follow(fingerprint) {
      const first = find(fingerprint);
      if (first !== undefined && first !== state.first) state = { ...state, first };
      return first !== undefined;
    },
    replace(next) {
      const found = keysOf(next);
      if (!isSame(found, state)) state = stateOf(found, state.keys.slice(0, state.keys.indexOf(state.first) + 1));
    },
  };
}

/** Creates a ring of a single key. */
export function keyRingOf(secret: Uint8Array): KeyRing {
  return createKeyRing([{ name: 'root.key', secret }]);
}

function keysOf(files: readonly RootKeyFile[]): Files {
  return { all: files.map(rootKeyOf), isRetired: files[0]?.isRetired === true };
}

/** @param used the keys that are in use, oldest first. Empty for a new ring */
function stateOf(files: Files, used: readonly RootKey[]): State {
  const keys = files.isRetired ? files.all.slice(1) : files.all;
  const last = used.findLast(({ fingerprint }) => keys.some(key => key.fingerprint === fingerprint))?.fingerprint;
  const first = keys.find(({ fingerprint }) => fingerprint === last) ?? keys.at(used.length === 0 ? -1 : 0);
  if (first === undefined) throw new RangeError('a key ring must have at least one root key that is not retired');
  return { ...files, keys, first };
}

function isSame({ all, isRetired }: Files, before: Files): boolean {
  const same = all.every(({ name, fingerprint }, i) => {
    const other = before.all[i];
    return name === other?.name && fingerprint === other.fingerprint;
  });
  return same && all.length === before.all.length && isRetired === before.isRetired;
}
