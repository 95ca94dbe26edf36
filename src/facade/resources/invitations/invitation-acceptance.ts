import { instanceFields } from '../../../api/instance.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { receivingWorkspaceName } from '../../../core/ids/invitation-names.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Identity } from '../../auth/identity.ts';
import type { Cached } from '../../caches/cached.ts';
import { requireRole } from '../../contract/roles.ts';
import { acrossTenants } from '../../objects/across-tenants.ts';
import type { Facade } from '../../objects/facade.ts';
import { assertNotPaused } from '../../objects/paused.ts';
import { ownFreeAccount } from './accepting-account.ts';
import { assertInvited, findInvitation, integrationName, whyAnswered } from './invitation-token.ts';

interface Acceptance {
  /** Applied integration. The integration may not have taken effect yet. */
  readonly integration: Cached<'Integration'>;
  /** The receiving workspace's name. */
  readonly workspace: string;
  /** Account name. */
  readonly account: string;
}

/**
 * Returns an earlier acceptance, provided that the caller is an owner of the receiving workspace.
 *
 * @throws Refusal 409 `invitation_used`
 */
async function repeatAcceptance(
  { caches, ownership }: Facade,
  identity: Identity,
  integration: Cached<'Integration'>,
  named: string | undefined,
): Promise<Acceptance> {
  const name = integration.spec.workspace as string;
  const workspace = await caches.live('Workspace', { name });
  const role = workspace && (await ownership.roleFor(identity, workspace));
  if (workspace === undefined || role === undefined) throw new Refusal('invitation_used');
  requireRole(role, 'Admin');
  const { account } = workspace.spec;
  if (named === undefined || named === account) return { integration, workspace: name, account };
  throw new Refusal('invitation_used', 'You have already accepted this invitation for another account.');
}

/**
 * Creates the receiving workspace for an account and waits for it to take effect. Returns the name of the workspace.
 */
async function makeReceiver(
  { caches, writer, instance }: Facade,
  account: string,
  integration: Cached<'Integration'>,
): Promise<string> {
  const { namespace, name: invited } = integrationName(integration);
  const name = receivingWorkspaceName(namespace, invited, account);
  const applied = await writer.edit(async () => {
    const before = await caches.live('Workspace', { name });
    assertNotPaused(before);
    return writer.apply(
      'Workspace',
      { name },
      {
        manager: FIELD_MANAGER.facade,
        before,
        concern: ['account', 'instance'],
        spec: { account, ...instanceFields(instance) },
      },
    );
  });
  await writer.waitFor('Workspace', applied);
  return name;
}

/**
 * Grants `workspace` access to the integration unless the invitation has been answered in the meantime.
 *
 * @throws Refusal 409, 410
 */
async function grant(facade: Facade, token: string, workspace: string): Promise<Cached<'Integration'>> {
  const { writer } = facade;
  return writer.edit(async () => {
    const { integration, state } = await findInvitation(facade, token);
    if (state === 'Active' && integration.spec.workspace === workspace) return integration;
    const why = whyAnswered(state);
    if (why !== undefined) throw new Refusal(why);
    return writer.apply('Integration', integrationName(integration), {
      manager: FIELD_MANAGER.facadeAcceptance,
      before: integration,
      concern: ['workspace'],
      spec: { workspace },
      exactly: true,
    });
  });
}

/**
 * Accepts an invitation for the given account. The account and the receiving workspace are created if they don't exist.
 * After that, access is granted for the exact integration version that was read, so only one of several concurrent
 * calls can succeed across all replicas. Should the process crash in between, the next attempt will reuse the empty
 * workspace.
 *
 * @param named name of one of the caller's accounts. If undefined, we use their Free account and create it if
 *   necessary
 * @throws Refusal 403 `forbidden`, `invitation_email_mismatch`, 404 `unknown_invitation`, 409 `invitation_used`,
 *   `free_account_exists`, 410 `invitation_expired`, 503
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
  assertInvited(facade, identity, integration);
  const account = named ?? (await ownFreeAccount(facade, identity));
  const workspace = await makeReceiver(facade, account, integration);
  return { integration: await acrossTenants(() => grant(facade, token, workspace)), workspace, account };
}
