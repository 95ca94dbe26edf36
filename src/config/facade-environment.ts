import { z } from 'zod';

/** Variables of the facade that are neither about its port nor about access tokens. */
export const FACADE_ENVIRONMENT = {
  SLUICE_INVITATION_REQUIRE_EMAIL: z
    .enum(['true', 'false'])
    .default('false')
    .describe(
      'Set to true to let only the owner of the invited email address accept or decline an invitation. Their access token must contain the claims email, with this address (not case-sensitive), and email_verified, which must be true. By default, anyone who has the token of the invitation can answer it.',
    ),
} as const;
