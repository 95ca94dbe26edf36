import type { Owner } from '../../api/owner.ts';
import type { Identity } from './identity.ts';

/** Roles, starting with the strongest. Each role includes all of the following roles. */
export const ROLES = ['Owner', 'Admin', 'Viewer'] as const satisfies readonly NonNullable<Owner['role']>[];
export type Role = (typeof ROLES)[number];

/** Workspace fields that determine its owners. */
interface OwnedWorkspace {
  readonly spec: { readonly account: string; readonly owners?: readonly Owner[] | undefined };
}

/** Account fields that determine its owners. */
interface OwningAccount {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly owners?: readonly Owner[] | undefined };
}

/** Returns the role of an entry. By default, this is Admin. */
export function roleOfOwner({ role = 'Admin' }: Owner): Role {
  return role;
}

/** Returns true if `role` is allowed to perform an action that requires `needed`. */
export function includesRole(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) <= ROLES.indexOf(needed);
}

/** Returns all roles assigned to an identity in a list of owners, without duplicates. */
export function rolesOf(identity: Identity, owners: readonly Owner[] = []): readonly Role[] {
  return [...new Set(owners.filter(owner => isMeant(owner, identity)).map(roleOfOwner))];
}

/** Returns the key of an entry in a list of owners. Exactly one of subject, group, and client should be set. */
export function ownerKey({ issuer, subject, group, client }: Owner): string {
  if (subject !== undefined) return `${issuer}\0subject\0${subject}`;
  return group === undefined ? `${issuer}\0client\0${client}` : `${issuer}\0group\0${group}`;
}

/** Returns the keys of all entries that mean an identity. */
export function ownerKeysOf({ issuer, subject, groups, client }: Identity): readonly string[] {
  return [
    ownerKey({ issuer, subject }),
    ...new Set(groups.map(group => ownerKey({ issuer, group }))),
    ...(client === undefined ? [] : [ownerKey({ issuer, client })]),
  ];
}

/**
 * Returns the role of an identity for a workspace. Includes the owners of the workspace's Account. An `Owner` is
 * allowed to do everything. An `Admin` is allowed to do the same, except for changing the owners. A `Viewer` is only
 * allowed to read, but not to read secrets and keys. Undefined if the identity does not have a role.
 */
export function mayActFor(
  identity: Identity,
  workspace: OwnedWorkspace,
  account: OwningAccount | undefined,
): Role | undefined {
  const theirs = account?.metadata.name === workspace.spec.account ? account.spec.owners : undefined;
  return strongest([...rolesOf(identity, workspace.spec.owners), ...rolesOf(identity, theirs)]);
}

/** Returns the role of an identity for an account and all of its workspaces. */
export function mayActForAccount(identity: Identity, account: OwningAccount): Role | undefined {
  return strongest(rolesOf(identity, account.spec.owners));
}

function strongest(roles: readonly Role[]): Role | undefined {
  return ROLES.find(role => roles.includes(role));
}

/**
 * Returns true if this owner matches the identity. Exactly one of subject, group, and client is compared, byte by byte.
 * Entries with several values or no values never match, but the API server should already have rejected them.
 */
function isMeant(owner: Owner, { issuer, subject, groups, client }: Identity): boolean {
  const given = [owner.subject, owner.group, owner.client].filter(each => each !== undefined);
  if (given.length !== 1 || owner.issuer !== issuer) return false;
  if (owner.subject !== undefined) return owner.subject === subject;
  if (owner.group !== undefined) return groups.includes(owner.group);
  return client !== undefined && owner.client === client;
}
