import { z } from 'zod';
import { withRule } from './rules.ts';
import { text, visibleAscii } from './strings.ts';

export const Owner = withRule(
  z.object({
    issuer: visibleAscii(512).describe(
      'Identity provider: iss of the access token, compared byte by byte. At most 512 characters.',
    ),
    subject: text({ min: 1, max: 255 })
      .describe('One person or machine: sub of the access token. At most 255 characters.')
      .optional(),
    group: text({ min: 1, max: 255 })
      .describe('All members of a group: one of the groups of the access token. At most 255 characters.')
      .optional(),
    client: text({ min: 1, max: 255 })
      .describe('A program: client_id or azp of the access token. At most 255 characters.')
      .optional(),
    role: z.enum(['Owner', 'Admin']).describe('Owner: all rights. Admin: all rights except changing owners.'),
  }),
  {
    rule: '[has(self.subject), has(self.group), has(self.client)].exists_one(given, given)',
    message: 'must have exactly one of subject, group and client',
    holds: owner => [owner.subject, owner.group, owner.client].filter(given => given !== undefined).length === 1,
  },
).describe('Access tokens that act as an owner or admin: an issuer, and exactly one of subject, group, client.');
export type Owner = z.infer<typeof Owner>;
