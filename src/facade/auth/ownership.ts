import type { Owner } from '../../api/owner.ts';
import type { Identity } from './identity.ts';

type Role = Owner['role'];

/** The fields of a Workspace that decide. */
interface OwnedWorkspace {
  readonly spec: { readonly account: string; readonly owners?: readonly Owner[] | undefined };
}

/** The fields of an Account that decide. */
interface OwningAccount {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly owners?: readonly Owner[] | undefined };
}

/** Returns the roles that a list of owners gives to an identity, each at most once. */
export function rolesOf(identity: Identity, owners: readonly Owner[] = []): readonly Role[] {
  return [...new Set(owners.filter(owner => isMeant(owner, identity)).map(({ role }) => role))];
}

/**
 * Returns the role of an identity for a workspace: `Owner` may do everything, `Admin` everything except changing
 * owners, undefined nothing. Owners of the workspace's Account count too; other Accounts do not.
 */
export function mayActFor(
  identity: Identity,
  workspace: OwnedWorkspace,
  account: OwningAccount | undefined,
): Role | undefined {
  const theirs = account?.metadata.name === workspace.spec.account ? account.spec.owners : undefined;
  return strongest([...rolesOf(identity, workspace.spec.owners), ...rolesOf(identity, theirs)]);
}

/** Returns the role of an identity for an account and all its workspaces. */
export function mayActForAccount(identity: Identity, account: OwningAccount): Role | undefined {
  return strongest(rolesOf(identity, account.spec.owners));
}

function strongest(roles: readonly Role[]): Role | undefined {
  return (['Owner', 'Admin'] as const).find(role => roles.includes(role));
}

/**
 * Compares byte by byte, with exactly one of subject, group and client. The API server refuses entries with none or
 * several; such an entry matches nobody here either.
 */
function isMeant(owner: Owner, { issuer, subject, groups, client }: Identity): boolean {
  const given = [owner.subject, owner.group, owner.client].filter(each => each !== undefined);
  if (given.length !== 1 || owner.issuer !== issuer) return false;
  if (owner.subject !== undefined) return owner.subject === subject;
  if (owner.group !== undefined) return groups.includes(owner.group);
  return client !== undefined && owner.client === client;
}
