import { publicId } from '../../../core/ids/ids.ts';
import { invitedAddressHash } from '../../../core/ids/invitation-names.ts';
import { limitsOf } from '../../../core/limits/limits.ts';
import type { InvitationMailRef, MailHold } from '../../../record/mail-reader.ts';
import type { Cached } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';

type Integration = Pick<Cached<'Integration'>, 'metadata' | 'spec'>;

/** Limits the number of invitations that are sent by email to an address, and by an account. */
export interface MailLimit {
  /**
   * Returns the reason for holding back an email, if this process knows that the account has sent all of its emails.
   * Does not read any data, so 10,000 emails can wait.
   */
  readonly known: (integration: Integration) => MailHold | undefined;
  /** Counts an email before it is sent or returns the reason why it has to wait. @throws FencedError */
  readonly reserve: (integration: Integration) => Promise<MailHold | undefined>;
  /** Returns the slot of an email that was not submitted to the server so that another email can be sent instead. */
  readonly release: (integration: Integration) => Promise<void>;
}

/** An account that has sent the maximum number of emails for this limit. */
interface FullAccount {
  readonly most: number | undefined;
  readonly untilMs: number;
}

export function createMailLimit(
  context: Pick<Context, 'caches' | 'mails' | 'limits' | 'keys' | 'nowMs' | 'fence'>,
): MailLimit {
  const { caches, mails, limits, keys, nowMs, fence } = context;
  const full = new Map<string, FullAccount>();

  function mailOf({ metadata, spec }: Integration): InvitationMailRef | undefined {
    const tenant = metadata.namespace ?? '';
    const name = caches.Workspace.store.get(tenant)?.spec.account;
    if (name === undefined) return undefined;
    // Accounts that don't exist use the limits of the Free plan.
    const account = caches.Account.store.get(name)?.spec ?? ({ plan: 'Free' } as const);
    return {
      account: publicId('Account', '', name),
      address: invitedAddressHash(keys.oldest().secret, tenant, spec.invitedEmail ?? ''),
      most: limitsOf(account, limits).invitationMailsPerDay,
      nowMs: nowMs(),
    };
  }

  return {
    known(integration) {
      const mail = mailOf(integration);
      const account = mail && full.get(mail.account);
      if (mail === undefined || account === undefined) return undefined;
      // If the limit has changed since then, it must be looked up again.
      if (account.untilMs <= mail.nowMs || account.most !== mail.most) return undefined;
      return { by: 'account', untilMs: account.untilMs };
    },
    async reserve(integration) {
      const mail = mailOf(integration);
      if (mail === undefined) return undefined;
      const hold = await mails.reserve(fence(), mail, integration.metadata.uid);
      if (hold?.by === 'account') full.set(mail.account, { most: mail.most, untilMs: hold.untilMs });
      else full.delete(mail.account);
      return hold;
    },
    async release(integration) {
      const mail = mailOf(integration);
      if (mail === undefined) return;
      await mails.release(fence(), mail, integration.metadata.uid);
      full.delete(mail.account);
    },
  };
}
