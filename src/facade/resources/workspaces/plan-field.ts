import { z } from 'zod';

/** The account plan. */
export const Plan = z.enum(['Free', 'Metered']).meta({
  description:
    "The account's plan, either Free or Metered. On the Free plan, distribution pauses when the included tokens have been used up. On the Metered plan, tokens are counted without a limit.",
});
