import type { RedisClient } from '../../redis/client.ts';
import { accountKeys } from '../../redis/keys.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { tryEach } from '../../time/try-each.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';
import { parsePartName, partName } from '../tokens/part-name.ts';

const script = (name: string) => readNamedScript(new URL(`${name}.lua`, import.meta.url));
const ACCOUNT_SPACE = script('account-space');
const ACCOUNT_RECALL = script('account-recall');
const APPLY_SPACE = script('apply-space');
const SHRINK_SPACE = script('shrink-space');
/** The maximum number of times that space is taken back from other parts, using up to 64 parts each time. */
const MOST_RECALLS = 32;
/** The time to wait for a part that should return its space. In total, ingress waits up to a second. */
const HOLDER_MS = 400;

/** The limit of an account, and the bytes that its parts store or have been granted, if known. */
export interface SpaceUse {
  readonly limitBytes: number;
  readonly usedBytes: number | undefined;
}

/**
 * OK: the part may store that much more. FULL: the account's limit is reached. NONE: there is no limit any more.
 */
export type SpaceAnswer = { readonly answer: 'OK' | 'NONE' | 'GONE' } | (SpaceUse & { readonly answer: 'FULL' });

/** The space that parts can use for the stored bytes of their account. */
export interface Space {
  /**
   * Grants a part at least `bytes` more than it stores. If necessary, space that is not used by other parts is taken
   * back first. In total, the parts are never granted more than the limit. Each step can be repeated. It does not
   * matter if a process stops in between.
   */
  readonly grow: (part: Part, bytes: number, nowMs: number) => Promise<SpaceAnswer>;
  /** Records the stored bytes of a part in its account, so that the space can't be used by other parts. */
  readonly register: (part: Part, nowMs: number) => Promise<void>;
}

export function createSpace(redis: ScriptClient & Pick<RedisClient, 'call'>): Space {
  async function report(part: Part) {
    const fields = ['gen', 'payer', 'storedMax', 'bytes', 'spaceSeq'];
    const reply = (await redis.call('hmget', partKeys(part).meta, ...fields)) as (string | null)[];
    const [gen, payer, limit, bytes, seq] = reply;
    if (gen !== part.gen) return undefined;
    return { payer: payer ?? '', limit: limit ?? '', bytes: bytes ?? '0', seq: seq ?? '0' };
  }

  const callAccount = (named: typeof ACCOUNT_SPACE, account: string, args: Record<string, string | number>) =>
    callScript(redis, named, { keys: accountKeys(account), args });
  const callPart = (named: typeof APPLY_SPACE, part: Part, args: Record<string, string | number>) =>
    callScript(redis, named, { keys: partKeys(part), args: { gen: part.gen, ...args } });

  async function recall(account: string, part: Part, nowMs: number): Promise<void> {
    const name = partName(part);
    const [, seq] = await callAccount(ACCOUNT_RECALL, account, { part: name, seq: '', space: '', nowMs });
    const [word, space] = await callPart(SHRINK_SPACE, part, { account, seq: seq as string });
    if (word === 'OK' && space === '') return;
    const left = word === 'OK' ? (space as string) : '';
    await callAccount(ACCOUNT_RECALL, account, { part: name, seq: seq as string, space: left, nowMs });
  }

  /** Takes back space from parts. Parts on a Redis master that doesn't reply don't affect the others. */
  async function recallFrom(account: string, names: readonly string[], nowMs: number): Promise<void> {
    await tryEach(names, HOLDER_MS, name => recall(account, parsePartName(name), nowMs));
  }

  async function ask(part: Part, need: number, nowMs: number): Promise<SpaceAnswer> {
    for (let recalls = 0; ; recalls++) {
      const reported = await report(part);
      if (reported === undefined) return { answer: 'GONE' };
      const { payer, limit, bytes, seq } = reported;
      if (payer === '' || limit === '') return { answer: 'NONE' };
      const args = { part: partName(part), seq, bytes, need, limit, nowMs };
      const [word, ...rest] = await callAccount(ACCOUNT_SPACE, payer, args);
      if ((word as string) === 'OK') {
        const [granted, space] = rest as string[];
        if (need > 0) await callPart(APPLY_SPACE, part, { limit, seq: granted as string, space: space as string });
        return { answer: 'OK' };
      }
      if ((word as string) !== 'BUSY' || recalls === MOST_RECALLS) {
        const usedBytes = (word as string) === 'FULL' ? Number(rest[0]) : undefined;
        return { answer: 'FULL', limitBytes: Number(limit), usedBytes };
      }
      await recallFrom(payer, rest as string[], nowMs);
    }
  }

  return {
    grow: ask,
    async register(part, nowMs) {
      await ask(part, 0, nowMs);
    },
  };
}
