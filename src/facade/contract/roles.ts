import { z } from 'zod';
import { Refusal } from '../../http/refusal.ts';
import { includesRole, ROLES, type Role } from '../auth/ownership.ts';

export const RoleField = z.enum(ROLES);

/** Describes all roles, as used in field descriptions. */
export const ROLE_MEANINGS =
  'Admins have all permissions except for changing the members. Viewers can only read, except for secrets and ingress keys.';

/** @throws Refusal 403 `insufficient_role` if `role` doesn't include `needed` */
export function requireRole(role: Role, needed: Role): void {
  if (includesRole(role, needed)) return;
  const enough = needed === 'Admin' ? 'Admin or Owner' : needed;
  throw new Refusal('insufficient_role', `Your role is ${role}. This call requires the role ${enough}.`);
}
