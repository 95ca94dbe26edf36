import { randomBytes } from 'node:crypto';
import { createGate } from '../../../src/part/gate/gate.ts';
import { type Part, partKeys } from '../../../src/part/keys.ts';
import { createPartRemoval } from '../../../src/part/state/part-removal.ts';
import { createTokens } from '../../../src/part/tokens/tokens.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { accountKeys } from '../../../src/redis/keys.ts';
import type { NamedScript } from '../../../src/redis/named-scripts.ts';
import { withClock } from './clock.ts';
import { createSlowClient } from './slow-client.ts';

const START_MS = 1_790_000_000_000;
export const DAY_MS = 86_400_000;
/** The number of earlier states that a failover can bring back. */
const MOST_STATES = 6;

/** Routes one event at the cost of a token. Returns the payer, or '' if there are not enough tokens. */
const ROUTE: NamedScript = {
  name: 'route-one',
  source: `#!lua
local m = redis.call('HMGET', KEYS[1], 'gen', 'payer', 'used', 'granted')
if not m[1] or m[1] == '-' or not m[2] then return '' end
if m[4] and tonumber(m[3] or '0') >= tonumber(m[4]) then
  redis.call('HSET', KEYS[1], 'hold', 'tokens', 'need', '1')
  return ''
end
redis.call('HINCRBY', KEYS[1], 'used', 1)
redis.call('HDEL', KEYS[1], 'hold', 'need')
return m[2]`,
  keys: ['meta'],
  listedKeys: undefined,
  args: [],
  takesMore: false,
};

type State = Readonly<Record<string, Readonly<Record<string, string>>>>;
/** The number of events that were routed at the cost of a payer, by payer. */
type Routed = Map<string, number>;

interface WorldPart {
  part: Part;
  routed: Routed;
  generations: number;
  readonly states: { readonly part: Part; readonly state: State; readonly routed: Routed }[];
}

export type LedgerWorld = Awaited<ReturnType<typeof createLedgerWorld>>;

/** Three parts, two accounts, and processes whose calls are late or lost. */
export async function createLedgerWorld(redis: RedisClient, included: number) {
  const clock = { ms: START_MS };
  const client = withClock(redis, () => clock.ms);
  const slow = createSlowClient(client);
  const gate = createGate(client);
  const plans = new Map([
    [`acc_${randomBytes(8).toString('hex')}`, 'Free'],
    [`acc_${randomBytes(8).toString('hex')}`, 'Metered'],
  ]);
  const accounts = [...plans.keys()];
  const lost: Routed = new Map();
  const accountStates = new Map<string, State[]>(accounts.map(account => [account, []]));
  for (const [account, plan] of plans) {
    await redis.call('hset', accountKeys(account).meta, 'plan', plan, 'included', included);
  }
  const tenant = `ten_${randomBytes(8).toString('hex')}`;
  const parts: WorldPart[] = Array.from({ length: 3 }, (_, n) => ({
    part: { tenant, queue: `q${n}`, gen: 'gen0', number: 0 },
    routed: new Map(),
    generations: 0,
    states: [],
  }));

  const keysOfAccount = (account: string) => {
    const { meta, seen, hold, grants, ended } = accountKeys(account);
    return [meta, seen, hold, grants, ended];
  };

  async function read(keys: readonly string[]): Promise<State> {
    const state: Record<string, Record<string, string>> = {};
    for (const key of keys) {
      if (!key.endsWith(':ended')) state[key] = { ...(await redis.readHash(key)) };
      else {
        const flat = (await redis.call('zrange', key, 0, -1, 'WITHSCORES')) as string[];
        state[key] = Object.fromEntries(flat.flatMap((member, i) => (i % 2 ? [] : [[member, flat[i + 1] as string]])));
      }
    }
    return state;
  }

  async function restore(state: State): Promise<void> {
    for (const [key, fields] of Object.entries(state)) {
      await redis.call('unlink', key);
      const isSorted = key.endsWith(':ended');
      const flat = Object.entries(fields).flatMap(([name, value]) => (isSorted ? [value, name] : [name, value]));
      if (flat.length > 0) await redis.call(isSorted ? 'zadd' : 'hset', key, ...flat);
    }
  }

  function keep<S>(states: S[], state: S): void {
    states.push(state);
    if (states.length > MOST_STATES) states.shift();
  }

  const setPayer = (account: string) => [
    { kind: 'meta' as const, field: 'payer' as const, value: account },
    { kind: 'meta' as const, field: 'plan' as const, value: plans.get(account) as string },
  ];

  const processOf = (of: typeof client) => ({
    tokens: createTokens(of),
    removal: createPartRemoval({ ...redis, ...of }),
  });
  const direct = processOf(client);
  const late = processOf(slow.client);
  const partOf = (n: number) => parts[n % parts.length] as WorldPart;
  const accountOf = (n: number) => accounts[n % accounts.length] as string;

  async function begin(n: number, account: string): Promise<void> {
    const at = partOf(n);
    at.part = { ...at.part, gen: `gen${++at.generations}` };
    await gate(at.part, 1, [{ kind: 'begin' }, ...setPayer(account)]);
  }
  for (const n of parts.keys()) await begin(n, accountOf(n));

  const ignore = () => undefined;

  return {
    accounts,
    parts,
    slow,
    pass: (ms: number) => {
      clock.ms += ms;
    },
    begin,
    /** Stores the current state, which a failover can restore. */
    async note(): Promise<void> {
      for (const at of parts) {
        const state = await read([partKeys(at.part).meta]);
        keep(at.states, { part: at.part, state, routed: new Map(at.routed) });
      }
      for (const account of accounts) keep(accountStates.get(account) as State[], await read(keysOfAccount(account)));
    },
    forgetStates(): void {
      for (const { states } of parts) states.length = 0;
      for (const states of accountStates.values()) states.length = 0;
    },
    async route(n: number): Promise<void> {
      const at = partOf(n);
      const payer = (await redis.runNamed(ROUTE, { keys: partKeys(at.part), args: {} })) as string;
      if (payer !== '') at.routed.set(payer, (at.routed.get(payer) ?? 0) + 1);
    },
    async pay(n: number, account: string): Promise<void> {
      await gate(partOf(n).part, 1, setPayer(account));
    },
    /** Calls that wait until they are picked. */
    settleLate: (n: number) => void late.tokens.settle(partOf(n).part, clock.ms).catch(ignore),
    recallLate: (account: string) => void late.tokens.recallAll(account, clock.ms).catch(ignore),
    removeLate(n: number): void {
      const { part } = partOf(n);
      const run = async () => {
        await late.removal.settle(part, clock.ms).catch(ignore);
        await late.removal.remove(part, 1, clock.ms);
      };
      void run().catch(ignore);
    },
    settle: (n: number) => direct.tokens.settle(partOf(n).part, clock.ms),
    async remove(n: number): Promise<void> {
      await direct.removal.settle(partOf(n).part, clock.ms);
      await direct.removal.remove(partOf(n).part, 1, clock.ms);
    },
    /** Loses the newest changes to a part, including the events that it has routed. */
    async failPart(n: number, back: number): Promise<void> {
      const at = partOf(n);
      const before = at.states.at(-1 - (back % at.states.length));
      if (before === undefined) return;
      await restore(before.state);
      for (const [account, count] of at.routed) {
        lost.set(account, (lost.get(account) ?? 0) + count - (before.routed.get(account) ?? 0));
      }
      at.part = before.part;
      at.routed = new Map(before.routed);
      at.states.length = 0;
    },
    async failAccount(account: string, back: number): Promise<void> {
      const states = accountStates.get(account) as State[];
      const before = states.at(-1 - (back % states.length));
      if (before !== undefined) await restore(before);
      states.length = 0;
    },
    async used(account: string): Promise<number> {
      return Number((await redis.call('hget', accountKeys(account).meta, 'used')) ?? 0);
    },
    routed: (account: string): number => parts.reduce((sum, { routed }) => sum + (routed.get(account) ?? 0), 0),
    lost: (account: string): number => lost.get(account) ?? 0,
    /** Returns the data of an account about parts. */
    async kept(account: string): Promise<Readonly<Record<'seen' | 'grants' | 'hold' | 'ended', string[]>>> {
      const { seen, grants, hold, ended } = accountKeys(account);
      const state = await read([seen, grants, hold, ended]);
      const fields = (key: string) => Object.keys(state[key] ?? {}).filter(field => field.includes(':'));
      return { seen: fields(seen), grants: fields(grants), hold: fields(hold), ended: fields(ended) };
    },
  };
}
