import type { RedisClient } from '../redis/client.ts';
import { accountKeys, recipientKeys } from '../redis/keys.ts';
import { FencedError } from './control-store.ts';
import { type InvitationMailRef, MAIL_PERIOD_MS, type MailHold } from './mail-reader.ts';

/**
 * The controller's record of invitation mails. It is independent of Integrations, restarts, and changes of the leader.
 */
export interface MailRecord {
  /**
   * Counts an email before it is sent or returns the reason why it must wait. Counting an email again for the same
   * Integration, for example for another attempt, only updates the time.
   *
   * @param uid uid of the Integration
   * @throws FencedError
   */
  readonly reserve: (fence: number, mail: InvitationMailRef, uid: string) => Promise<MailHold | undefined>;
  /** Returns an email that was not sent unless it may have been sent by an earlier attempt. @throws FencedError */
  readonly release: (fence: number, mail: InvitationMailRef, uid: string) => Promise<void>;
}

/** @param mostToRecipient emails to an address in 24 hours, from all workspaces */
export function createMailRecord(redis: Pick<RedisClient, 'run'>, mostToRecipient: number): MailRecord {
  async function run(
    what: 'reserve' | 'release',
    of: 'account' | 'recipient',
    fence: number,
    mail: InvitationMailRef,
    uid: string,
  ): Promise<MailHold | undefined> {
    const a = accountKeys(mail.account);
    const r = recipientKeys(mail.recipient);
    const [keys, name, most] =
      of === 'account'
        ? [[a.meta, a.mails, a.mailed], mail.address, mail.most ?? '']
        : // The record of a recipient expires, so its fence has to be a part of it.
          [[r.mailed, r.mails, r.mailed], uid, mostToRecipient];
    const args = [fence, mail.nowMs, MAIL_PERIOD_MS, name, uid, most, what];
    const [answer, until] = (await redis.run('mail', keys, args)) as string[];
    if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${keys[0]}`);
    if (answer === 'OK') return undefined;
    return { by: answer === 'ACCOUNT' && of === 'account' ? 'account' : 'address', untilMs: Number(until) };
  }

  async function release(fence: number, mail: InvitationMailRef, uid: string): Promise<void> {
    await run('release', 'recipient', fence, mail, uid);
    await run('release', 'account', fence, mail, uid);
  }

  return {
    async reserve(fence, mail, uid) {
      const ofAccount = await run('reserve', 'account', fence, mail, uid);
      if (ofAccount !== undefined) return ofAccount;
      const ofRecipient = await run('reserve', 'recipient', fence, mail, uid);
      // An email that is not sent must not use up the limit of the account.
      if (ofRecipient !== undefined) await run('release', 'account', fence, mail, uid);
      return ofRecipient;
    },
    release,
  };
}
