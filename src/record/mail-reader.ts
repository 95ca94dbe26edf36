import type { RedisClient } from '../redis/client.ts';
import { accountKeys, CLUSTER_KEYS } from '../redis/keys.ts';

/**
 * The period within which a workspace can send one email to an address. This period is also used for counting the
 * emails of an account.
 */
export const MAIL_PERIOD_MS = 24 * 60 * 60 * 1_000;

/**
 * Field of the cluster's hash: `0` if the controller has no mail server. Before the controller has recorded this, there
 * may be a mail server.
 */
export const MAIL_SERVER_FIELD = 'mails';

/** An invitation that is to be mailed. */
export interface InvitationMailRef {
  /** The account of the workspace that sends the invitation (`acc_…`). */
  readonly account: string;
  /** The hash of the workspace and the address. `invitedAddressHash` returns this hash. */
  readonly address: string;
  /** The maximum number of emails that the account can send in this period. Undefined if there is no limit. */
  readonly most: number | undefined;
  /** Current time in milliseconds, according to the Redis clock. */
  readonly nowMs: number;
}

/** The limit that holds a mail back, and the time from which the mail can be sent (ms, Redis clock). */
export interface MailHold {
  readonly by: 'address' | 'account';
  readonly untilMs: number;
}

/** Used by the facade to read the record of emails. */
export interface MailReader {
  /** Returns the reason if the email for a new invitation would have to wait. Rejects while Redis is not available. */
  readonly holdOf: (mail: InvitationMailRef) => Promise<MailHold | undefined>;
  /** Returns the number of emails that count towards an account's limit. */
  readonly countOf: (account: string, nowMs: number) => Promise<number>;
}

export function createMailReader(redis: Pick<RedisClient, 'call'>): MailReader {
  const since = (nowMs: number) => `(${nowMs - MAIL_PERIOD_MS}`;
  const countOf = async (account: string, nowMs: number) =>
    Number(await redis.call('zcount', accountKeys(account).mails, since(nowMs), '+inf'));

  async function recorded({ account, address, most, nowMs }: InvitationMailRef): Promise<MailHold | undefined> {
    const { mails } = accountKeys(account);
    const [sent, count] = await Promise.all([redis.call('zscore', mails, address), countOf(account, nowMs)]);
    const freeMs = Number(sent ?? 0) + MAIL_PERIOD_MS;
    if (sent !== null && freeMs > nowMs) return { by: 'address', untilMs: freeMs };
    if (most === undefined || count < most) return undefined;
    const [, frees] = (await redis.call(
      'zrangebyscore',
      mails,
      since(nowMs),
      '+inf',
      'withscores',
      'limit',
      count - most,
      1,
    )) as (string | undefined)[];
    return { by: 'account', untilMs: Number(frees ?? nowMs) + MAIL_PERIOD_MS };
  }

  return {
    countOf,
    async holdOf(mail) {
      const hold = await recorded(mail);
      // Without a mail server, the invitation is written to a Secret.
      if (hold === undefined || (await redis.call('hget', CLUSTER_KEYS.meta, MAIL_SERVER_FIELD)) === '0')
        return undefined;
      return hold;
    },
  };
}
