import { z } from 'zod';
import { withRule } from './rules.ts';
import { text, visibleAscii } from './strings.ts';

export const Owner = withRule(
  z.object({
    issuer: visibleAscii(512).describe(
      'The identity provider, which must match the iss claim of the access token byte by byte. The value can have at most 512 characters.',
    ),
    subject: text({ min: 1, max: 255 })
      .describe(
        'A user or a machine, which must match the sub claim of the access token. The value can have at most 255 characters.',
      )
      .optional(),
    group: text({ min: 1, max: 255 })
      .describe(
        'A group, which must match one of the groups in the access token. The value can have at most 255 characters.',
      )
      .optional(),
    client: text({ min: 1, max: 255 })
      .describe(
        'A client, which must match the client_id or azp claim of the access token. The value can have at most 255 characters.',
      )
      .optional(),
    role: z
      .enum(['Owner', 'Admin'])
      .describe(
        'The role of the owner. An Owner has all permissions. An Admin has all permissions except changing the owners.',
      ),
  }),
  {
    rule: '[has(self.subject), has(self.group), has(self.client)].exists_one(given, given)',
    message: 'must have exactly one of subject, group and client',
    holds: owner => [owner.subject, owner.group, owner.client].filter(given => given !== undefined).length === 1,
  },
).describe('An owner or admin, which is identified by an issuer and exactly one of subject, group and client.');
export type Owner = z.infer<typeof Owner>;
