import { z } from 'zod';
import { withRule } from './rules.ts';
import { text, visibleAscii } from './strings.ts';

export const Owner = withRule(
  z.object({
    issuer: visibleAscii(512, 'https://login.example.com').describe(
      'The identity provider, up to 512 characters long. Must match the iss claim of the access token byte by byte.',
    ),
    subject: text({ min: 1, max: 255 })
      .describe(
        'The user or machine, as identified by the sub claim of the access token. It can be up to 255 characters long.',
      )
      .optional(),
    group: text({ min: 1, max: 255 })
      .describe("The group, which must be included in the access token's groups. It can be up to 255 characters long.")
      .optional(),
    client: text({ min: 1, max: 255 })
      .describe(
        'The client (a program), as identified by the client_id, azp, appid, or cid claim of the access token. Only matches tokens issued for the client itself, not the tokens of people using it. It can be up to 255 characters long.',
      )
      .optional(),
    role: z
      .enum(['Owner', 'Admin', 'Viewer'])
      .describe(
        'The role of the owner. An Owner can do everything. An Admin can do everything except change the owners. A Viewer can read everything except secrets and ingress keys. Defaults to Admin.',
      )
      .optional(),
  }),
  {
    rule: '[has(self.subject), has(self.group), has(self.client)].exists_one(given, given)',
    message: 'must have exactly one of subject, group and client',
    holds: owner => [owner.subject, owner.group, owner.client].filter(given => given !== undefined).length === 1,
  },
).describe(
  'An owner, admin, or viewer, identified by an issuer in combination with exactly one of subject, group, or client.',
);
export type Owner = z.infer<typeof Owner>;
