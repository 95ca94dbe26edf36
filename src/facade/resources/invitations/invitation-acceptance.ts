import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { receivingWorkspaceName } from '../../../core/ids/invitation-names.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Identity } from '../../auth/identity.ts';
import type { Cached } from '../../objects/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import { assertNotPaused } from '../../objects/paused.ts';
import { ownFreeAccount } from './accepting-account.ts';
import { findInvitation, integrationName, whyAnswered } from './invitation-token.ts';

interface Acceptance {
  /** As it was applied: it may not be in force yet. */
  readonly integration: Cached<'Integration'>;
  /** Name of the workspace that receives. */
  readonly workspace: string;
  /** Name of its account. */
  readonly account: string;
}

/** What was accepted before, if by somebody who may act for the workspace that receives. @throws Refusal 409 `invitation_used` */
async function repeatAcceptance(
  { world, ownership }: Facade,
  identity: Identity,
  integration: Cached<'Integration'>,
  named: string | undefined,
): Promise<Acceptance> {
  const name = integration.spec.workspace as string;
  const workspace = await world.live('Workspace', { name });
  if (workspace === undefined || !(await ownership.owns(identity, workspace))) throw new Refusal('invitation_used');
  const { account } = workspace.spec;
  if (named === undefined || named === account) return { integration, workspace: name, account };
  throw new Refusal('invitation_used', 'You have accepted it already, onto another account.');
}

/** The workspace that receives the integration on an account: in force, with its namespace. */
async function makeReceiver(
  { world, objects }: Facade,
  account: string,
  integration: Cached<'Integration'>,
): Promise<string> {
  const { namespace, name: invited } = integrationName(integration);
  const name = receivingWorkspaceName(namespace, invited, account);
  const applied = await objects.edit(async () => {
    const before = await world.live('Workspace', { name });
    assertNotPaused(before);
    const wanted = { manager: FIELD_MANAGER.facade, before, concern: ['account'] as const, spec: { account } };
    return objects.apply('Workspace', { name }, wanted);
  });
  await objects.waitFor('Workspace', applied);
  return name;
}

/** Grants the integration to `workspace`, unless it was answered meanwhile. @throws Refusal 409, 410 */
async function grant(facade: Facade, token: string, workspace: string): Promise<Cached<'Integration'>> {
  const { objects } = facade;
  return objects.edit(async () => {
    const { integration, state } = await findInvitation(facade, token);
    if (state === 'Active' && integration.spec.workspace === workspace) return integration;
    const why = whyAnswered(state);
    if (why !== undefined) throw new Refusal(why);
    return objects.apply('Integration', integrationName(integration), {
      manager: FIELD_MANAGER.facadeAcceptance,
      before: integration,
      concern: ['workspace'],
      spec: { workspace },
      exactly: true,
    });
  });
}

/**
 * Accepts an invitation onto an account: account, receiving workspace, and last the grant, of exactly the integration that
 * was read. So one of many has it, on whichever replica, and a crash in between leaves nothing but an empty workspace that
 * the next try takes.
 *
 * @param named name of an account of the caller; undefined: the own Free one, made when it is missing
 * @throws Refusal 403, 404 `unknown_invitation`, 409 `invitation_used`, `free_account_exists`, 410 `invitation_expired`, 503
 */
export async function acceptInvitation(
  facade: Facade,
  identity: Identity,
  token: string,
  named: string | undefined,
): Promise<Acceptance> {
  const { integration, state } = await findInvitation(facade, token);
  if (state === 'Active') return repeatAcceptance(facade, identity, integration, named);
  const why = whyAnswered(state);
  if (why !== undefined) throw new Refusal(why);
  const account = named ?? (await ownFreeAccount(facade, identity));
  const workspace = await makeReceiver(facade, account, integration);
  return { integration: await grant(facade, token, workspace), workspace, account };
}
