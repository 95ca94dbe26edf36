import { z } from 'zod';
import { AccountLimits, LIMIT_NAMES, type LimitName } from '../api/kinds/account-limits.ts';
import { DEFAULT_LIMITS, type LimitPolicy, type Limits } from '../core/limits/limits.ts';
import { nearestName } from '../core/problems/nearest-name.ts';

/** The limits in the format of the variable. Null if the limit is set to `unlimited`. */
type Written = Readonly<Partial<Record<LimitName, number | null>>>;

const UNLIMITED = 'unlimited';
const EXAMPLE = 'streams=1000,storedBytes=10737418240';

/** Reads a single pair. If it is invalid, the required change is returned. */
function readPair(pair: string, unlimited: boolean): readonly [LimitName, number | null] | string {
  const [name = '', value = '', ...rest] = pair.split('=').map(part => part.trim());
  if (rest.length > 0 || value === '') return `must be name=number, separated by commas, such as ${EXAMPLE}`;
  const known = LIMIT_NAMES.find(each => each === name);
  if (known === undefined) {
    const meant = nearestName(name, LIMIT_NAMES);
    const hint = meant === undefined ? `use one of ${LIMIT_NAMES.join(', ')}` : `did you mean ${meant}?`;
    return `unknown limit ${JSON.stringify(name)}; ${hint}`;
  }
  if (value === UNLIMITED && unlimited) return [known, null];
  const number = /^\d{1,16}$/.test(value) ? AccountLimits.shape[known].unwrap().safeParse(Number(value)) : undefined;
  if (number?.success) return [known, number.data];
  const { minValue, maxValue } = AccountLimits.shape[known].unwrap();
  return `${known} must be a whole number between ${minValue} and ${maxValue}${unlimited ? `, or ${UNLIMITED}` : ''}, such as ${known}=1000`;
}

function limits(options: { readonly unlimited: boolean }) {
  return z
    .string()
    .transform((text, context): Written => {
      const pairs = text.split(',').filter(pair => pair.trim() !== '');
      const read = pairs.map(pair => readPair(pair, options.unlimited));
      const entries = read.filter(pair => typeof pair !== 'string');
      const twice = entries.find(([name], index) => entries.findIndex(([other]) => other === name) !== index);
      const faults = read.filter(pair => typeof pair === 'string');
      if (twice !== undefined) faults.push(`${twice[0]} appears twice; specify each limit only once`);
      for (const message of new Set(faults)) context.addIssue({ code: 'custom', message });
      return Object.fromEntries(entries);
    })
    .prefault('');
}

const listed = (of: Limits) =>
  Object.entries(of)
    .map(([name, limit]) => `${name}=${limit}`)
    .join(', ');

/** The variables used to set the limits of accounts. */
export const LIMITS_ENVIRONMENT = {
  SLUICE_FREE_LIMITS: limits({ unlimited: true }).describe(
    `The limits of each Account on the Free plan, as comma-separated pairs such as ${EXAMPLE}. The names and ranges are the same as for spec.limits in an Account, which takes precedence. To disable a limit, use ${UNLIMITED}. If a limit is omitted, its default is used: ${listed(DEFAULT_LIMITS.Free)}.`,
  ),
  SLUICE_METERED_LIMITS: limits({ unlimited: true }).describe(
    `The limits of each Account on the Metered plan, in the same format. If a limit is omitted, its default is used: ${listed(DEFAULT_LIMITS.Metered)}.`,
  ),
  SLUICE_MAX_LIMITS: limits({ unlimited: false }).describe(
    'The highest limits of any Account, in the same format. These limits also apply to the spec.limits field of an Account. By default, there are no maximum limits.',
  ),
  SLUICE_INVITED_LIMITS: limits({ unlimited: false })
    .superRefine((written, context) => {
      for (const [name, limit] of Object.entries(written) as [LimitName, number][]) {
        const most = DEFAULT_LIMITS.Free[name] ?? 0;
        if (limit <= most) continue;
        const message = `${name} must not exceed ${most}, because the admission policy of the facade only allows limits up to the shipped defaults of the Free plan, such as ${name}=${most}`;
        context.addIssue({ code: 'custom', message });
      }
    })
    .describe(
      "The limits that the facade writes to spec.limits when creating an Account for an accepted invitation. The format is the same, such as streams=0,integrations=0 for partners that only receive events. The limits can't exceed the built-in defaults of SLUICE_FREE_LIMITS. For an omitted limit, the limit of the Free plan applies. Existing accounts are not changed.",
    ),
} as const;

type Values = z.output<z.ZodObject<typeof LIMITS_ENVIRONMENT>>;

function over(defaults: Limits, written: Written): Limits {
  const all = Object.entries({ ...defaults, ...written }).filter(([, limit]) => limit !== null);
  return Object.freeze(Object.fromEntries(all)) as Limits;
}

/** Returns the limits to use for accounts which are created when an invitation is accepted. */
export function readInvitedLimits(data: Values): Limits {
  return over({}, data.SLUICE_INVITED_LIMITS);
}

/** Returns the limits to use for this installation. */
export function readLimits(data: Values): LimitPolicy {
  return Object.freeze({
    byPlan: Object.freeze({
      Free: over(DEFAULT_LIMITS.Free, data.SLUICE_FREE_LIMITS),
      Metered: over(DEFAULT_LIMITS.Metered, data.SLUICE_METERED_LIMITS),
    }),
    ceilings: over({}, data.SLUICE_MAX_LIMITS),
  });
}
