import { z } from 'zod';
import type { AuditTarget } from '../telemetry/audit-destination.ts';

/** The facade's variables, except for the ones used for its port and for access tokens. */
export const FACADE_ENVIRONMENT = {
  SLUICE_INVITATION_REQUIRE_EMAIL: z
    .enum(['true', 'false'])
    .default('false')
    .describe(
      'If set to true, only the owner of the invited email address can accept or decline an invitation. The access token must contain this address in the claim email (case-insensitive), and the claim email_verified must be true. By default, anyone with the invitation token can accept or decline the invitation.',
    ),
  SLUICE_FACADE_DOCS: z
    .enum(['true', 'false'])
    .default('true')
    .describe(
      'If true, the facade serves the reference of the REST API at /docs and its OpenAPI document at /openapi.json. You can read both without an access token. If false, the facade responds to these paths with 404.',
    ),
  SLUICE_AUDIT_FILE: z
    .string()
    .regex(
      /^(fd:\d{1,4}|(?!fd:).+)$/s,
      'must be the path of a file, or fd: and the number of an open file descriptor, such as fd:3',
    )
    .optional()
    .describe(
      "The file to which the facade appends its audit lines, or fd: followed by the number of a file descriptor, such as fd:3. If the file doesn't exist or has been renamed, the facade creates a new file. By default, audit lines are written to standard output, using the field audit. Audit lines do not depend on SLUICE_LOG_LEVEL.",
    ),
} as const;

/** Returns where to write audit lines. */
export function readAuditTarget(text: string | undefined): AuditTarget {
  if (text === undefined) return { fd: 1 };
  return text.startsWith('fd:') ? { fd: Number(text.slice('fd:'.length)) } : { file: text };
}
