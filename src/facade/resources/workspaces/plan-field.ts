import { z } from 'zod';

/** The account plan. */
export const Plan = z.enum(['Free', 'Metered']).meta({
  description:
    'Account plan, either Free or Metered. On the Free plan, distribution pauses once the included tokens have been used up. Usage on the Metered plan is counted but unlimited.',
});
