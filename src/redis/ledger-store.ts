import type { Balance, Shortage } from '../core/events/tokens.ts';
import type { Argument, RedisClient } from './client.ts';
import type { InboxRef } from './inbox-store.ts';
import { accountKeys, integrationKeys } from './keys.ts';

/** What an integration was ever routed at one account's cost. */
export interface LedgerTotal {
  /** Generation of the ledger: one that was lost begins again at 0, under another. */
  readonly gen: string;
  /** Tokens; only grows. */
  readonly total: number;
}

/** Tokens that a batch of a queue asks for before it is routed. */
export interface Reserving {
  /** `ten_…:queue`, as in the routers' hints. */
  readonly queue: string;
  /** Of the queue's owner. */
  readonly epoch: number;
  /** Tokens of the first event that costs any, and of all. */
  readonly need: number;
  readonly amount: number;
  /** `int_…` that the batch may be charged for. */
  readonly integrations: readonly string[];
  /** What an earlier owner left was folded, and what costs nothing any more is left out. */
  readonly closely: boolean;
}

export type Reserved =
  | {
      readonly answer: 'OK';
      /** How many may be spent, `amount` at most. */
      readonly tokens: number;
      /** The queue was short before. */
      readonly cleared: boolean;
    }
  /** Ask again, `closely`; `charged`: `int_…` that a batch which was left may have been charged for. */
  | { readonly answer: 'LOOK'; readonly charged: readonly string[] }
  /**
   * SHORT: the account is spent. BUSY: other queues' batches hold what is left. CLOSED: the
   * account's state is missing. FENCED: a newer owner of the queue reserved.
   */
  | { readonly answer: 'SHORT' | 'BUSY' | 'CLOSED' | 'FENCED' };

/** What `route` would answer for a subscription now. */
export interface Survey {
  readonly answer: 'OK' | 'CLOSED' | 'PENDING' | 'REVOKED' | 'GONE' | 'REGEN' | 'PAUSED';
  /** undefined: nothing was ever charged for the integration. */
  readonly ledger: LedgerTotal | undefined;
  /** The last ref that the inbox took; '' for none. What is not after it costs nothing any more. */
  readonly last: string;
}

/** Tokens: integrations' ledgers, where the step that routes charges, folded into their producers' accounts. */
export interface LedgerStore {
  /** Sets tokens of a `Free` account aside for a batch; the same queue's next call overwrites it. */
  readonly reserve: (account: string, nowMs: number, batch: Reserving) => Promise<Reserved>;
  /**
   * Adds ledger totals (by `int_…`) to the account's balance, by max: idempotent, in any order. Releases the queue's
   * reservation, if one is given.
   */
  readonly fold: (
    account: string,
    totals: ReadonlyMap<string, LedgerTotal>,
    release?: { readonly queue: string; readonly epoch: number },
  ) => Promise<void>;
  readonly survey: (inbox: InboxRef, gen: string, account: string) => Promise<Survey>;
}

/** Totals that one call folds: keeps a script under a few milliseconds. */
const FOLD_TOTALS = 500;

/** Makes the text of a ledger's answer a total; undefined while nothing was charged. */
export function ledgerTotal(gen: string, total: string): LedgerTotal | undefined {
  return gen === '' ? undefined : { gen, total: Number(total) };
}

export function createLedgerStore(redis: RedisClient): LedgerStore {
  return {
    async reserve(account, nowMs, { queue, epoch, need, amount, integrations, closely }) {
      const a = accountKeys(account);
      const [answer, told, cleared] = (await redis.run(
        'reserve',
        [a.meta, a.hold, a.holder, a.short],
        [nowMs, queue, epoch, need, amount, closely ? 1 : 0, integrations.join(' ')],
      )) as [Reserved['answer'], string, number];
      if (answer === 'LOOK') return { answer, charged: told.split(' ').filter(each => each !== '') };
      return answer === 'OK' ? { answer, tokens: Number(told), cleared: cleared === 1 } : { answer };
    },

    async fold(account, totals, release) {
      const a = accountKeys(account);
      const all = [...totals];
      for (let at = 0; at === 0 || at < all.length; at += FOLD_TOTALS) {
        // Released with the last of them: until then the tokens are held or counted, never neither.
        const last = at + FOLD_TOTALS >= all.length ? release : undefined;
        const args: Argument[] = [last?.queue ?? '', last?.epoch ?? 0];
        for (const [integration, { gen, total }] of all.slice(at, at + FOLD_TOTALS)) {
          args.push(`${integration}.${gen}`, total);
        }
        await redis.run('fold', [a.meta, a.seen, a.hold, a.holder], args);
      }
    },

    async survey({ integration, sub }, gen, account) {
      const i = integrationKeys(integration);
      const [answer, ledgerGen, total, last] = (await redis.run(
        'survey',
        [i.meta, i.sub(sub), i.ledger],
        [gen, account],
      )) as [Survey['answer'], string, string, string];
      return { answer, ledger: ledgerTotal(ledgerGen, total), last };
    },
  };
}

/** What an account has and has spent, and which queues wait for tokens; undefined while Redis does not know its plan. */
export async function readBalance(
  redis: RedisClient,
  account: string,
): Promise<(Balance & { readonly shortages: readonly Shortage[] }) | undefined> {
  const a = accountKeys(account);
  const [meta, short] = await Promise.all([redis.readHash(a.meta), redis.readHash(a.short)]);
  if (meta.plan === undefined) return undefined;
  const includedTokens = Number(meta.included);
  const usedTokens = Number(meta.used ?? 0);
  return {
    plan: meta.plan as Balance['plan'],
    includedTokens,
    usedTokens,
    ...(meta.plan === 'Free' ? { remainingTokens: Math.max(0, includedTokens - usedTokens) } : {}),
    shortages: Object.entries(short).map(([queue, text]) => {
      const [tokens, atMs] = text.split(' ').map(Number) as [number, number];
      return { queue, tokens, atMs };
    }),
  };
}
