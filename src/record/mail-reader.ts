import type { RedisClient } from '../redis/client.ts';
import { accountKeys, CLUSTER_KEYS, recipientKeys } from '../redis/keys.ts';

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
  /** The hash of the workspace and the address. It is returned by `invitedAddressHash`. */
  readonly address: string;
  /** The hash of the address without a workspace, as returned by `recipientHash`. */
  readonly recipient: string;
  /** The maximum number of emails that the account can send in this period. Undefined if there is no limit. */
  readonly most: number | undefined;
  /** Current time in milliseconds, according to the Redis clock. */
  readonly nowMs: number;
}

/**
 * Which limit holds a mail back, and from when on it can be sent (ms, Redis clock). Does not tell whether other workspaces
 * have sent emails to the address.
 */
export interface MailHold {
  readonly by: 'address' | 'account';
  readonly untilMs: number;
}

/** Used by the facade to read the record of emails. */
export interface MailReader {
  /** Returns the reason if the email for a new invitation would have to wait. Rejects while Redis is not available. */
  readonly holdOf: (mail: InvitationMailRef) => Promise<MailHold | undefined>;
}

/** @param mostToRecipient emails to an address in this period, from all workspaces */
export function createMailReader(redis: Pick<RedisClient, 'call'>, mostToRecipient: number): MailReader {
  /** Returns when the next of `most` emails can be sent. Undefined if that is now. */
  async function freeMs(mails: string, count: number, most: number, nowMs: number): Promise<number | undefined> {
    if (count < most) return undefined;
    const since = `(${nowMs - MAIL_PERIOD_MS}`;
    const [, frees] = (await redis.call(
      'zrangebyscore',
      mails,
      since,
      '+inf',
      'withscores',
      'limit',
      count - most,
      1,
    )) as (string | undefined)[];
    return Number(frees ?? nowMs) + MAIL_PERIOD_MS;
  }

  async function recorded(mail: InvitationMailRef): Promise<MailHold | undefined> {
    const { account, address, recipient, most = Number.POSITIVE_INFINITY, nowMs } = mail;
    const [{ mails }, { mails: received }] = [accountKeys(account), recipientKeys(recipient)];
    const since = `(${nowMs - MAIL_PERIOD_MS}`;
    const [sent, count, toRecipient] = await Promise.all([
      redis.call('zscore', mails, address),
      redis.call('zcount', mails, since, '+inf'),
      redis.call('zcount', received, since, '+inf'),
    ]);
    const againMs = Number(sent ?? 0) + MAIL_PERIOD_MS;
    if (sent !== null && againMs > nowMs) return { by: 'address', untilMs: againMs };
    const accountMs = await freeMs(mails, Number(count), most, nowMs);
    if (accountMs !== undefined) return { by: 'account', untilMs: accountMs };
    const recipientMs = await freeMs(received, Number(toRecipient), mostToRecipient, nowMs);
    return recipientMs === undefined ? undefined : { by: 'address', untilMs: recipientMs };
  }

  return {
    async holdOf(mail) {
      const hold = await recorded(mail);
      // Without a mail server, the invitation is written to a Secret.
      if (hold === undefined || (await redis.call('hget', CLUSTER_KEYS.meta, MAIL_SERVER_FIELD)) === '0')
        return undefined;
      return hold;
    },
  };
}
