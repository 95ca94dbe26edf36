import { publicId } from '../../../core/ids/ids.ts';
import { invitedAddressHash } from '../../../core/ids/invitation-names.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';

type MailHold = NonNullable<Awaited<ReturnType<Facade['mails']['holdOf']>>>;

/**
 * Returns the reason if the email for an invitation would have to wait. Without Redis, we leave this to the controller.
 */
async function holdOf(facade: Facade, { name, workspace }: OwnedTenant, email: string): Promise<MailHold | undefined> {
  const { caches, mails, mailsPerDay, nowMs, keys } = facade;
  const account = caches.get('Account', { name: workspace.spec.account });
  if (account === undefined) return undefined;
  try {
    return await mails.holdOf({
      account: publicId('Account', '', account.metadata.name),
      address: invitedAddressHash(keys.oldest().secret, name, email),
      most: mailsPerDay(account),
      nowMs: nowMs(),
    });
  } catch {
    return undefined;
  }
}

/**
 * Refuses a new invitation that could not be sent by email at the moment.
 *
 * @throws Refusal 409 `mail_limit_reached`, with the time at which it can be sent
 */
export async function assertMailable(facade: Facade, tenant: OwnedTenant, email: string): Promise<void> {
  const hold = await holdOf(facade, tenant, email);
  if (hold === undefined) return;
  const again = `No invitation was created. Try again after ${new Date(Math.ceil(hold.untilMs / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')}.`;
  const why =
    hold.by === 'address'
      ? 'Your workspace has already sent an invitation to this address in the last 24 hours.'
      : `The account ${publicId('Account', '', tenant.workspace.spec.account)} has sent all invitations that it may send in 24 hours (invitationMailsPerDay).`;
  throw new Refusal('mail_limit_reached', `${why} ${again}`);
}
