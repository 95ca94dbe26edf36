import type { RedisClient } from '../redis/client.ts';
import { accountKeys } from '../redis/keys.ts';

/** Period in which an address gets one mail of a workspace, and in which the mails of an account are counted. */
export const MAIL_PERIOD_MS = 24 * 60 * 60 * 1_000;

/** An invitation that is to be mailed. */
export interface InvitationMailRef {
  /** `acc_…` of the workspace that invites. */
  readonly account: string;
  /** Hash of workspace and address, as returned by `invitedAddressHash`. */
  readonly address: string;
  /** Most mails of the account in the period. Undefined if there is no limit. */
  readonly most: number | undefined;
  /** Current time in milliseconds, according to the Redis clock. */
  readonly nowMs: number;
}

/** Which limit holds a mail back, and from when on it can be sent (ms, Redis clock). */
export interface MailHold {
  readonly by: 'address' | 'account';
  readonly untilMs: number;
}

/** What the record says about mails, for the facade. */
export interface MailReader {
  /** Returns why a new invitation would have to wait for its mail. Rejects while Redis is unavailable. */
  readonly holdOf: (mail: InvitationMailRef) => Promise<MailHold | undefined>;
}

export function createMailReader(redis: Pick<RedisClient, 'call'>): MailReader {
  return {
    async holdOf({ account, address, most, nowMs }) {
      const { mails } = accountKeys(account);
      const since = `(${nowMs - MAIL_PERIOD_MS}`;
      const [sent, count] = await Promise.all([
        redis.call('zscore', mails, address),
        redis.call('zcount', mails, since, '+inf'),
      ]);
      const freeMs = Number(sent ?? 0) + MAIL_PERIOD_MS;
      if (sent !== null && freeMs > nowMs) return { by: 'address', untilMs: freeMs };
      if (most === undefined || Number(count) < most) return undefined;
      const [, frees] = (await redis.call(
        'zrangebyscore',
        mails,
        since,
        '+inf',
        'withscores',
        'limit',
        Number(count) - most,
        1,
      )) as (string | undefined)[];
      return { by: 'account', untilMs: Number(frees ?? nowMs) + MAIL_PERIOD_MS };
    },
  };
}
