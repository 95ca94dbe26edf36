import type { RedisClient } from '../redis/client.ts';
import { accountKeys } from '../redis/keys.ts';
import { FencedError } from './control-store.ts';
import { type InvitationMailRef, MAIL_PERIOD_MS, type MailHold } from './mail-reader.ts';

/**
 * The controller's record of invitation mails. The record is independent of Integrations, restarts, and changes of the
 * leader.
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

export function createMailRecord(redis: Pick<RedisClient, 'run'>): MailRecord {
  async function run(what: 'reserve' | 'release', fence: number, mail: InvitationMailRef, uid: string) {
    const { account, address, most, nowMs } = mail;
    const a = accountKeys(account);
    const args = [fence, nowMs, MAIL_PERIOD_MS, address, uid, most ?? '', what];
    const [answer, until] = (await redis.run('mail', [a.meta, a.mails, a.mailed], args)) as string[];
    if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${a.meta}`);
    return [answer, until] as const;
  }

  return {
    async reserve(fence, mail, uid) {
      const [answer, until] = await run('reserve', fence, mail, uid);
      if (answer === 'OK') return undefined;
      return { by: answer === 'ADDRESS' ? 'address' : 'account', untilMs: Number(until) };
    },
    release: async (fence, mail, uid) => void (await run('release', fence, mail, uid)),
  };
}
