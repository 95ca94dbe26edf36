import { Refusal } from '../../http/refusal.ts';
import type { Facade } from '../objects/facade.ts';
import type { OwnedAccount, OwnedIntegration, OwnedTenant } from '../objects/ownership.ts';
import { assertNotPaused } from '../objects/paused.ts';
import { requireRole } from './roles.ts';
import { type Access, type Call, type Route, roleOf } from './route.ts';

/** A call of any route. */
export type AnyCall = Call<Access, string, unknown, unknown>;

/** Returns the workspace specified in the query or the body. */
function namedTenant(...places: unknown[]): string | undefined {
  for (const place of places) {
    const id = (place as { producerTenantPublicId?: unknown } | undefined)?.producerTenantPublicId;
    if (typeof id === 'string') return id;
  }
  return undefined;
}

/**
 * Returns the resources that the caller may access according to the route. The path is validated before anything else
 * is read.
 */
export async function reach(
  facade: Facade,
  route: Route,
  call: AnyCall,
): Promise<{ tenant?: OwnedTenant; integration?: OwnedIntegration; account?: OwnedAccount }> {
  const params = call.params as Readonly<Record<string, string>>;
  const pausable = route.method !== 'GET' && route.dataPlane !== true && route.closes !== true;
  if (route.access === 'producer') {
    const id = params['tenant'] ?? namedTenant(call.body, call.query);
    if (id === undefined)
      throw new Refusal(
        'invalid_request',
        'Add producerTenantPublicId, which is the id of your workspace (ten_ followed by 20 characters).',
      );
    const tenant = await facade.ownership.tenant(call.identity, id);
    requireRole(tenant.role, roleOf(route));
    if (pausable) assertNotPaused(tenant.workspace);
    return { tenant };
  }
  if (route.access === 'recipient') {
    const integration = await facade.ownership.integration(call.identity, params['integration'] as string);
    requireRole(integration.recipient.role, roleOf(route));
    if (pausable) {
      assertNotPaused(integration.recipient.workspace, facade.caches.get('Workspace', { name: integration.producer }));
    }
    return { integration };
  }
  if (route.access === 'account') {
    const account = await facade.ownership.account(call.identity, params['account'] as string);
    requireRole(account.role, roleOf(route));
    return { account };
  }
  return {};
}

/** The resources that a call has reached. */
export type Inside = Awaited<ReturnType<typeof reach>>;

/** Returns the account that owns the requested object, if it has one. */
export function accountOf({ tenant, integration, account }: Inside): string | undefined {
  const { workspace } = tenant ?? integration?.recipient ?? {};
  return workspace === undefined ? account?.name : workspace.spec.account;
}
