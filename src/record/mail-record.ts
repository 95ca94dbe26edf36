import type { RedisClient } from '../redis/client.ts';
import { accountKeys, CLUSTER_KEYS } from '../redis/keys.ts';
import { FencedError } from './control-store.ts';
import { type InvitationMailRef, MAIL_PERIOD_MS, MAIL_SERVER_FIELD, type MailHold } from './mail-reader.ts';

/**
 * Notes whether there is a mail server, for the facade. Without one, no mail is counted, so none can be beyond a limit. All
 * replicas of the controller have the same one.
 */
export async function noteMailServer(redis: Pick<RedisClient, 'call'>, exists: boolean): Promise<void> {
  await redis.call('hset', CLUSTER_KEYS.meta, MAIL_SERVER_FIELD, exists ? '1' : '0');
}

/** The controller's record of invitation mails. It outlives Integrations, restarts, and changes of the leader. */
export interface MailRecord {
  /**
   * Counts a mail that is about to be sent, or returns why it must wait. Counting it again for the same Integration, such as
   * for another attempt, only updates the time.
   *
   * @param uid uid of the Integration
   * @throws FencedError
   */
  readonly reserve: (fence: number, mail: InvitationMailRef, uid: string) => Promise<MailHold | undefined>;
  /** Gives back a mail that was not sent, unless an earlier attempt may have sent it. @throws FencedError */
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
