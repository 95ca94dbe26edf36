import { z } from 'zod';
import { groupKey } from '../../../api/group-key.ts';
import { Refusal } from '../../../http/refusal.ts';
import { publicIdField } from '../../contract/fields.ts';
import { validate } from '../../contract/validate.ts';

const Pair = z.strictObject({
  producerTenantPublicId: publicIdField('Workspace'),
  groupKey: groupKey().meta({
    description:
      'The group key, consisting of 1 to 256 bytes of UTF-8 without any control characters or leading and trailing spaces. Group keys are compared byte by byte.',
    example: 'store-17',
  }),
  integrationPublicId: publicIdField('Integration'),
});
type Pair = z.output<typeof Pair>;

/** The body that identifies a group key and an integration of a producer. */
export const PairBody = Pair.meta({ id: 'ActivationPair', description: 'Specifies the group key and integration.' });

/** Returns an optional query parameter with the same description as the corresponding body field. */
function parameter<S extends z.ZodType>(field: S) {
  const { description = '', example } = field.meta() ?? {};
  return field.optional().meta({ description, example });
}

/** The same fields, but as optional query parameters. */
export const PairQuery = z.strictObject({
  producerTenantPublicId: parameter(Pair.shape.producerTenantPublicId),
  groupKey: parameter(Pair.shape.groupKey),
  integrationPublicId: parameter(Pair.shape.integrationPublicId),
});

/**
 * Returns the pair from the body or from the query parameters. If both are present, they must be equal.
 *
 * @throws Refusal 400 `ambiguous_request`, or 422 with the missing fields
 */
export function resolvePair(body: Pair | undefined, query: z.output<typeof PairQuery>): Pair {
  if (body === undefined) return validate('query', Pair, query);
  const fields = Object.keys(query) as (keyof Pair)[];
  const errors = fields
    .filter(field => query[field] !== undefined && query[field] !== body[field])
    .map(field => ({ parameter: field, detail: 'is different from the value in the body' }));
  if (errors.length > 0) throw new Refusal('ambiguous_request', { errors });
  return body;
}
