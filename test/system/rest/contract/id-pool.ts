/** The owner of an id: one of the workspaces of the callers, or another workspace. */
export type Possession = 'mine' | 'foreign';

const ID = /^([a-z]{3,4}_)[0-9A-Za-z_-]{8,}$/;
const REFERENCE = /^@\{([a-z]+_):(mine|foreign):(\d+)\}$/;
/**
 * The maximum number of remembered ids for each prefix. The oldest ids are removed so that most of the ids still exist.
 */
const MOST = 100;
/** Values in the format of an id that does not exist. */
const UNKNOWN: Readonly<Record<string, string>> = { sinv_: `sinv_${'A'.repeat(43)}` };

/** Returns a placeholder for an id that is selected from the existing ids when the request is sent. */
export function idReference(prefix: string, possession: Possession, n: number): string {
  return `@{${prefix}:${possession}:${n}}`;
}

/** Replaces every reference to an id of the callers with a reference to the n-th id of its prefix. */
export function inFamily<T>(value: T, n: number): T {
  if (value === undefined) return value;
  const text = JSON.stringify(value).replaceAll(/@\{([a-z]+_):mine:\d+\}/g, (_all, prefix: string) =>
    idReference(prefix, 'mine', n),
  );
  return JSON.parse(text) as T;
}

/**
 * The known ids by prefix. Ids in responses are added, so later requests can use resources created by earlier requests.
 */
export interface IdPool {
  /** The first ids are never removed, and the n-th ids of all prefixes belong together. */
  readonly add: (possession: Possession, ...ids: readonly string[]) => void;
  /** Adds all ids contained in a response. */
  readonly harvest: (answer: unknown) => void;
  /**
   * Returns `value`, replacing each reference with an id. If there is no id with this prefix, an id that does not exist
   * is used.
   */
  readonly resolve: (value: unknown) => unknown;
}

/**
 * @param families the number of ids of each prefix that are never removed
 * @param words replacements for whole values of the document
 */
export function createIdPool(families = 0, words: Readonly<Record<string, string>> = {}): IdPool {
  const ids = new Map<string, string[]>();

  function add(possession: Possession, id: string): void {
    const prefix = ID.exec(id)?.[1];
    if (prefix === undefined) return;
    const key = `${possession} ${prefix}`;
    const known = ids.get(key) ?? [];
    if (known.includes(id)) return;
    known.push(id);
    if (known.length > MOST) known.splice(families, 1);
    ids.set(key, known);
  }

  function resolveText(text: string): string {
    const [, prefix = '', possession = '', n = ''] = REFERENCE.exec(text) ?? [];
    if (prefix === '') return words[text] ?? text;
    const known = ids.get(`${possession} ${prefix}`) ?? [];
    return known[Number(n) % known.length] ?? UNKNOWN[prefix] ?? `${prefix}00000000000000000000`;
  }

  function harvest(answer: unknown): void {
    if (typeof answer === 'string') add('mine', answer);
    else if (typeof answer === 'object' && answer !== null) for (const each of Object.values(answer)) harvest(each);
  }

  function resolve(value: unknown): unknown {
    if (typeof value === 'string') return resolveText(value);
    if (Array.isArray(value)) return value.map(resolve);
    if (typeof value !== 'object' || value === null) return value;
    // Like JSON.parse, which creates a normal field for `__proto__`.
    const copy: Record<string, unknown> = {};
    for (const [name, each] of Object.entries(value)) {
      Object.defineProperty(copy, name, { value: resolve(each), enumerable: true, configurable: true, writable: true });
    }
    return copy;
  }

  return { add: (possession, ...given) => given.forEach(id => add(possession, id)), harvest, resolve };
}
