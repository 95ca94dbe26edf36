import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { instanceFields } from '../../../api/instance.ts';
import type { AccountSpec } from '../../../api/kinds/account.ts';
import { Owner } from '../../../api/owner.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import type { ProblemError } from '../../../core/problems/problem.ts';
import { entityTagOf, matchesStrongly } from '../../../http/entity-tag.ts';
import { Refusal } from '../../../http/refusal.ts';
import { ownedPart } from '../../../kube/managed-fields.ts';
import type { Identity } from '../../auth/identity.ts';
import { mayActForAccount, roleOfOwner, rolesOf } from '../../auth/ownership.ts';
import { ROLE_MEANINGS, RoleField, requireRole } from '../../contract/roles.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';

const TAG_MEANING = 'The entity tag of the list. It changes whenever the list changes.';

/** The maximum number of members of an account. */
export const MOST_MEMBERS = 64;
const ONE_OF = 'must have exactly one of subject, group and client';

const { issuer, subject, group, client } = Owner.shape;

/** Returns the fields identifying a member. */
function memberKey(member: Owner): string {
  return JSON.stringify([member.issuer, member.subject ?? null, member.group ?? null, member.client ?? null]);
}

function areDifferent(members: readonly Owner[]): boolean {
  return new Set(members.map(memberKey)).size === members.length;
}

const Member = z
  .strictObject({
    issuer: issuer.meta({
      description: `${issuer.description} New members must have an issuer that is configured by the operator.`,
      example: 'https://login.example.com',
    }),
    subject,
    group: group.meta({ example: 'admins' }),
    client,
    role: RoleField.optional().meta({
      description: `The role of the member for the account and all of its workspaces. Owners have all permissions. ${ROLE_MEANINGS} Defaults to Admin.`,
      example: 'Owner',
    }),
  })
  .refine(member => [member.subject, member.group, member.client].filter(given => given !== undefined).length === 1, {
    error: ONE_OF,
  })
  .meta({ id: 'Member' });

export const WantedMembers = z
  .strictObject({
    members: z
      .array(Member)
      .min(1)
      .max(MOST_MEMBERS)
      .refine(areDifferent, { error: 'must not contain the same member twice' })
      .meta({
        description: `All members of the account (1 to ${MOST_MEMBERS}). You must remain an Owner. Members that you leave out lose their access.`,
      }),
  })
  .meta({ id: 'WantedMembers' });

const ListedMember = z
  .object({ issuer, subject, group, client, role: RoleField.meta({ description: 'The role of the member.' }) })
  .meta({ id: 'ListedMember' });

const Members = z
  .object({
    members: z
      .array(ListedMember)
      .meta({ description: 'All members, sorted by issuer, then by subject, group, or client.' }),
  })
  .meta({ id: 'MemberList' });

type ListedMembers = z.output<typeof Members>['members'];

/** Returns the sorted members, including their roles. */
export function membersOf(owners: readonly Owner[]): ListedMembers {
  const listed = owners.map(owner => ({ ...owner, role: roleOfOwner(owner) }));
  return listed.toSorted((a, b) => (memberKey(a) < memberKey(b) ? -1 : 1));
}

/**
 * Checks that the caller remains an Owner so that there is at least one user who can change the members again.
 *
 * @throws Refusal 422
 */
export function checkMembers(identity: Identity, wanted: readonly Owner[]): void {
  if (rolesOf(identity, wanted).includes('Owner')) return;
  throw new Refusal(
    'invalid_request',
    'The members must contain you as an Owner. To leave the account, ask another Owner to remove you.',
  );
}

/**
 * Checks that new members can sign in. Members who are already in the list are kept even if their issuer is no longer
 * configured. The other issuers are not listed, because they may belong to other customers.
 *
 * @throws Refusal 422
 */
export function checkIssuers(
  { identity, issuers }: { readonly identity: Identity; readonly issuers: readonly string[] },
  wanted: readonly Owner[],
  current: readonly Owner[],
): void {
  const known = new Set(current.map(memberKey));
  const detail = `is not an issuer whose access tokens are accepted. This member could never sign in. Use the iss claim of the member's access tokens (yours is ${identity.issuer}), byte by byte, or ask the operator to add the issuer`;
  const errors = wanted.flatMap((member, i): ProblemError[] =>
    issuers.includes(member.issuer) || known.has(memberKey(member))
      ? []
      : [{ pointer: `/members/${i}/issuer`, detail }],
  );
  if (errors.length > 0) throw new Refusal('invalid_request', { errors });
}

/** Returns the response with these members, and their entity tag. */
function answerWith(owners: readonly Owner[]) {
  const members = membersOf(owners);
  return { status: 200, body: { members }, headers: { etag: tagOf(members) } };
}

const tagOf = (members: ListedMembers) => entityTagOf(JSON.stringify(members));

/**
 * @throws Refusal 403 if the caller is no longer an Owner, 409 `field_managed` if another manager has the list, 409
 *   `being_deleted`, 422 if a new member can't sign in, or 412 `precondition_failed` if the list has another entity tag than `ifMatch`
 */
async function replaceMembers(
  { caches, writer, instance, issuers }: Facade,
  identity: Identity,
  name: string,
  members: readonly Owner[],
  ifMatch: string | undefined,
) {
  const wanted = membersOf(members);
  return writer.edit(async () => {
    const before = await caches.live('Account', { name });
    // If another Owner has changed the caller's role, the cache may not contain this change yet.
    const role = before && mayActForAccount(identity, before);
    if (before === undefined || role === undefined) throw new Refusal('forbidden');
    requireRole(role, 'Owner');
    // Refuse the change because it would create the account again as soon as it is gone.
    if (before.metadata.deletionTimestamp !== undefined) {
      throw new Refusal('being_deleted', 'You cannot change the members of this account because it is being deleted.');
    }
    // Don't apply the same list again, because we would become an owner of a field that is managed by another manager.
    const current = membersOf(before.spec.owners);
    if (isDeepStrictEqual(current, wanted)) return before;
    if (ifMatch !== undefined && !matchesStrongly(ifMatch, tagOf(current))) throw new Refusal('precondition_failed');
    checkIssuers({ identity, issuers }, members, current);
    // Keeps the limits set when an invitation was accepted.
    const { limits }: Partial<AccountSpec> = ownedPart(before, FIELD_MANAGER.facade);
    return writer.apply(
      'Account',
      { name },
      {
        manager: FIELD_MANAGER.facade,
        before,
        concern: ['owners', 'instance'],
        spec: { owners: [...wanted], ...(limits === undefined ? {} : { limits }), ...instanceFields(instance) },
        exactly: true,
      },
    );
  });
}

const listMembers = defineRoute({
  method: 'GET',
  path: '/waas/accounts/{account}/members',
  access: 'account',
  scope: 'waas:read',
  operation: 'listMembers',
  tag: 'Accounts',
  summary: 'List the members of an account',
  description:
    'Returns the owners in the Account. People who only have access to some of its workspaces are not included, because they are owners of the Workspace.',
  answers: { 200: { description: "The account's members.", schema: Members, headers: { ETag: TAG_MEANING } } },
  async handle(_facade, { account }) {
    return answerWith(account.object.spec.owners);
  },
});

const putMembers = defineRoute({
  method: 'PUT',
  path: '/waas/accounts/{account}/members',
  access: 'account',
  scope: 'waas:write',
  role: 'Owner',
  operation: 'replaceMembers',
  tag: 'Accounts',
  summary: 'Replace the members of an account',
  description:
    'Replaces the whole list. Retrieve it first, and send it back with your changes and its `ETag` in `If-Match`. Without `If-Match`, you could undo a change that another Owner has made in the meantime. You can only use this call for accounts that were created when an invitation was accepted. For all other accounts, the request is rejected with `field_managed` or `refused_by_policy`. Change their members where the account was created, such as in Git or with kubectl. Removed members lose their access within a few seconds.',
  largeBody: true,
  body: WantedMembers,
  conditional: true,
  answers: { 200: { description: 'The members are now in force.', schema: Members, headers: { ETag: TAG_MEANING } } },
  async handle(facade, { identity, account, body, ifMatch }) {
    checkMembers(identity, body.members);
    const applied = await replaceMembers(facade, identity, account.name, body.members, ifMatch);
    await facade.writer.waitFor('Account', applied);
    return { ...answerWith(applied.spec.owners), about: { kind: 'Account', name: account.name } };
  },
});

export const MEMBER_ROUTES = [listMembers, putMembers];
