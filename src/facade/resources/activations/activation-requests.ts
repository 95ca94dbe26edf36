import { z } from 'zod';
import { groupKey } from '../../../api/group-key.ts';
import { Refusal } from '../../../http/refusal.ts';
import { publicIdField } from '../../contract/fields.ts';
import { validate } from '../../contract/validate.ts';

const Pair = z.strictObject({
  producerTenantPublicId: publicIdField('Workspace'),
  groupKey: groupKey().meta({
    description: '1 to 256 bytes of UTF-8, compared byte by byte; no control characters, no spaces at its ends.',
    example: 'store-17',
  }),
  integrationPublicId: publicIdField('Integration'),
});
type Pair = z.output<typeof Pair>;

/** A body that names one group key and one integration of a producer. */
export const PairBody = Pair.meta({ id: 'ActivationPair', description: 'One group key, and one integration.' });

/** A field as a parameter that may be left out, described as it is in the body. */
function parameter<S extends z.ZodType>(field: S) {
  const { description = '', example } = field.meta() ?? {};
  return field.optional().meta({ description, example });
}

/** The same as query parameters, any of them. */
export const PairQuery = z.strictObject({
  producerTenantPublicId: parameter(Pair.shape.producerTenantPublicId),
  groupKey: parameter(Pair.shape.groupKey),
  integrationPublicId: parameter(Pair.shape.integrationPublicId),
});

/**
 * What a call is about that takes its fields in the body, as query parameters, or the same in both.
 * @throws Refusal 400 `ambiguous_request`; 422 that names what is missing
 */
export function resolvePair(body: Pair | undefined, query: z.output<typeof PairQuery>): Pair {
  if (body === undefined) return validate('query', Pair, query);
  const fields = Object.keys(query) as (keyof Pair)[];
  const errors = fields
    .filter(field => query[field] !== undefined && query[field] !== body[field])
    .map(field => ({ parameter: field, detail: 'is not what the body says' }));
  if (errors.length > 0) throw new Refusal('ambiguous_request', { errors });
  return body;
}
