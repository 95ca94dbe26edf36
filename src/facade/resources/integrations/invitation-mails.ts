import { publicId } from '../../../core/ids/ids.ts';
import { invitedAddressHash } from '../../../core/ids/invitation-names.ts';
import { remedyOfLimit } from '../../../core/problems/limit-remedy.ts';
import { Refusal } from '../../../http/refusal.ts';
import { timestampOf } from '../../../kube/object.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';

/**
 * Returns the reason if the email for an invitation would have to wait, including the limit of the account and its use.
 * Without Redis, we leave this to the controller.
 */
async function holdOf(facade: Facade, { name, workspace }: OwnedTenant, email: string) {
  const { caches, mails, limits, nowMs, keys } = facade;
  const account = caches.get('Account', { name: workspace.spec.account });
  if (account === undefined) return undefined;
  const id = publicId('Account', '', account.metadata.name);
  const [most, now] = [limits.of(account).invitationMailsPerDay, nowMs()];
  try {
    const address = invitedAddressHash(keys.oldest().secret, name, email);
    const hold = await mails.holdOf({ account: id, address, most, nowMs: now });
    return hold && { ...hold, id, most, sent: await mails.countOf(id, now) };
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
  const again = `No invitation was created. Try again after ${timestampOf(Math.ceil(hold.untilMs / 1_000) * 1_000)}.`;
  const why =
    hold.by === 'address'
      ? 'Your workspace has already sent an invitation to this address in the last 24 hours.'
      : `The account ${hold.id} has sent ${hold.sent} invitations in the last 24 hours. Its limit invitationMailsPerDay is ${hold.most}.`;
  const facts = { account: hold.id, most: hold.most, ceiling: facade.ceilings.invitationMailsPerDay };
  const remedy = hold.by === 'address' ? '' : ` ${remedyOfLimit('invitationMailsPerDay', facts)}`;
  throw new Refusal('mail_limit_reached', `${why} ${again}${remedy}`);
}
