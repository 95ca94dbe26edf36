import { createAdvance } from '../../../src/part/catchup/advance.ts';
import { type Completion, type CompletionAnswer, createExchange } from '../../../src/part/claims/exchange.ts';
import { createEvict } from '../../../src/part/claims/held-claims.ts';
import { type Claim, type ClaimedEvent, isAlone, type Push } from '../../../src/part/claims/message.ts';
import { type Part, partKeys } from '../../../src/part/keys.ts';
import { createReadClaimedBodies } from '../../../src/part/log/claimed-bodies.ts';
import type { SweepState } from '../../../src/part/sweep/due.ts';
import { createSweep } from '../../../src/part/sweep/sweep.ts';
import { createTokens } from '../../../src/part/tokens/tokens.ts';
import type { RedisClient } from '../../../src/redis/client.ts';

/** The time for which the claims of an inactive dispatcher are kept, in milliseconds. */
export const READY_MS = 3_000;
const MOST_CALLS = 100;

/** A claimed event that is being sent to the partner. */
export interface Flight {
  readonly part: Part;
  readonly claim: Claim;
  readonly event: ClaimedEvent;
  /** Undefined if the event is no longer stored. */
  readonly body: Buffer | undefined;
}

/** Returns the results of an exchange for ended attempts, or no results if the response was lost. */
export interface Report {
  readonly part: Part;
  readonly dispatcher: string;
  readonly completions: readonly Completion[];
  answers: readonly CompletionAnswer[] | undefined;
}

/** The state of a part known to a dispatcher. */
interface AtPart {
  readonly held: Map<string, Flight>;
  readonly ended: Completion[];
  readonly lapsed: Set<string>;
  readonly sweep: SweepState;
  pushed: number;
  bytes: number;
}

export const JOBS = ['exchange', 'advance', 'tokens', 'sweep', 'evict'] as const;
export type Job = (typeof JOBS)[number];

/** A dispatcher process in single steps: the calls of its part workers and its maintenance, without any waiting. */
export type Dispatcher = ReturnType<typeof createDispatcher>;

async function untilDone(step: () => Promise<boolean>): Promise<void> {
  for (let calls = 0; await step(); calls++) if (calls > MOST_CALLS) throw new Error('there is always more work');
}

export function createDispatcher(
  redis: RedisClient,
  name: string,
  nowMs: () => number,
  onReport: (report: Report) => void,
) {
  const exchange = createExchange(redis);
  const advance = createAdvance(redis);
  const evict = createEvict(redis);
  const sweep = createSweep(redis);
  const tokens = createTokens(redis);
  const readBodies = createReadClaimedBodies(redis);
  const known = new Map<string, AtPart>();
  let calls = 0;

  function at(part: Part): AtPart {
    const key = partKeys(part).channel;
    const found = known.get(key) ?? { held: new Map(), ended: [], lapsed: new Set(), sweep: {}, pushed: 0, bytes: 0 };
    known.set(key, found);
    return found;
  }

  function release(part: Part, { lane, ref }: Claim): void {
    at(part).ended.push({ lane, ref, outcome: 'released', reason: 'released' });
  }

  async function take(part: Part, events: readonly ClaimedEvent[]): Promise<void> {
    for (const event of events) {
      const lanes = event.claims.map(({ lane }) => lane);
      const isLeft = event.size !== undefined && event.body === undefined;
      const [read] = isLeft ? await readBodies(part, name, [{ ref: event.ref, lanes }]) : [];
      const body = isLeft ? read?.body : event.body;
      for (const [i, claim] of event.claims.entries()) {
        if (read?.usable[i] === false) release(part, claim);
        else at(part).held.set(claim.lane, { part, claim, event, body });
      }
    }
  }

  async function exchangeOnce(part: Part, most: number): Promise<void> {
    const mine = at(part);
    const holding = {
      dispatcher: name,
      number: ++calls,
      readyMs: READY_MS,
      limit: 64,
      held: mine.held.size + mine.ended.length,
      holdsAlone: [...mine.held.values()].some(({ claim }) => isAlone(claim)),
      pushed: mine.pushed,
      bytes: mine.bytes,
      roomBytes: 2 ** 21,
    };
    const report: Report = { part, dispatcher: name, completions: mine.ended.splice(0), answers: undefined };
    onReport(report);
    const answer = await exchange(part, holding, report.completions, most);
    if (answer.answer === 'GONE') {
      known.delete(partKeys(part).channel);
      return;
    }
    report.answers = answer.answers;
    mine.pushed = answer.pushed;
    mine.bytes = answer.bytes;
    for (const lapsed of answer.lapsed) mine.lapsed.add(lapsed);
    await take(part, answer.events);
  }

  const jobs: Readonly<Record<Job, (part: Part, most: number) => Promise<void>>> = {
    exchange: exchangeOnce,
    async advance(part) {
      await untilDone(async () => {
        const answer = await advance(part);
        return answer.answer === 'OK' && answer.more;
      });
    },
    async tokens(part) {
      await tokens.settle(part, nowMs());
    },
    async sweep(part) {
      await untilDone(async () => {
        const answer = await sweep(part, at(part).sweep);
        return answer.answer === 'OK' && answer.more;
      });
    },
    async evict(part) {
      for (const lapsed of at(part).lapsed) {
        await evict(part, lapsed);
        at(part).lapsed.delete(lapsed);
      }
    },
  };

  return {
    name,
    /** The number of attempts in progress for all parts. */
    flights: (): Flight[] => [...known.values()].flatMap(({ held }) => [...held.values()]),
    async hear(part: Part, push: Push): Promise<void> {
      if (push.dispatcher !== name) return;
      at(part).pushed = push.pushed;
      at(part).bytes = push.bytes;
      await take(part, push.events);
    },
    work: (job: Job, part: Part, most: number): Promise<void> => jobs[job](part, most),
    /** Ends an attempt. The next exchange reports its result. */
    end({ part, claim }: Flight, outcome: Completion['outcome'], dueMs: number): void {
      at(part).held.delete(claim.lane);
      const wasSent = outcome !== 'released' && outcome !== 'expired';
      at(part).ended.push({
        lane: claim.lane,
        ref: claim.ref,
        outcome,
        reason: outcome === 'gone' ? '410' : outcome === 'delivered' ? '200' : '500',
        ...(wasSent ? { latencyMs: 5 } : {}),
        ...(outcome === 'failed' ? { dueMs } : {}),
      });
    },
  };
}
