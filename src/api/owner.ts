import { z } from 'zod';
import { withRule } from './rules.ts';
import { text, visibleAscii } from './strings.ts';

export const Owner = withRule(
  z.object({
    issuer: visibleAscii(512).describe(
      "The identity provider: the token's iss, compared byte by byte. At most 512 characters.",
    ),
    subject: text({ min: 1, max: 255 })
      .describe("One person or machine: the token's sub. At most 255 characters.")
      .optional(),
    group: text({ min: 1, max: 255 })
      .describe("Everybody in a group: one of the token's groups. At most 255 characters.")
      .optional(),
    client: text({ min: 1, max: 255 })
      .describe("A program: the token's client_id or azp. At most 255 characters.")
      .optional(),
    role: z.enum(['Owner', 'Admin']).describe('Owner: everything. Admin: everything but changing owners.'),
  }),
  {
    rule: '[has(self.subject), has(self.group), has(self.client)].exists_one(given, given)',
    message: 'needs exactly one of subject, group, client',
    holds: owner => [owner.subject, owner.group, owner.client].filter(given => given !== undefined).length === 1,
  },
).describe('Whose tokens count as an owner: an issuer, and exactly one of subject, group, client.');
export type Owner = z.infer<typeof Owner>;
