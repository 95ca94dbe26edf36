import { z } from 'zod';
import type { ZodOpenApiOperationObject, ZodOpenApiResponseObject } from 'zod-openapi';
import { PROBLEM_CONTENT_TYPE } from '../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';

const ProblemSchema = z
  .object({
    type: z.string().meta({
      description:
        'The path of the documentation for this code on the same server, i.e. /problems/ followed by the code.',
    }),
    title: z.string().meta({ description: 'The meaning of the code. This title is always the same for a given code.' }),
    status: z.int().min(400).max(599).meta({ description: 'The HTTP status code.' }),
    detail: z.string().meta({ description: 'An explanation of what to change in this particular request.' }),
    code: z.string().meta({ description: 'A stable code for programmatic use.' }),
    errors: z
      .array(
        z.object({
          pointer: z
            .string()
            .optional()
            .meta({ description: 'A JSON Pointer (RFC 6901) to the affected part of the body.' }),
          header: z.string().optional().meta({ description: 'The name of the affected header.' }),
          parameter: z.string().optional().meta({ description: 'The name of the affected path or query parameter.' }),
          detail: z
            .string()
            .meta({ description: 'A description of the error. This never includes the value from the request.' }),
        }),
      )
      .optional()
      .meta({ description: 'A list of errors in the request, including their location.' }),
  })
  .meta({ id: 'Problem', description: 'Specifies why a request was rejected (RFC 9457).' });

/** The names of the shared responses, by status. */
const NAMES: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  402: 'PaymentRequired',
  403: 'Forbidden',
  404: 'NotFound',
  408: 'RequestTimeout',
  409: 'Conflict',
  410: 'Gone',
  413: 'ContentTooLarge',
  414: 'UriTooLong',
  415: 'UnsupportedMediaType',
  417: 'ExpectationFailed',
  422: 'UnprocessableContent',
  429: 'TooManyRequests',
  431: 'HeadersTooLarge',
  500: 'InternalServerError',
  503: 'ServiceUnavailable',
};

/** Returns the OpenAPI definition for a text header. */
export const textHeader = (description: string) => ({ description, schema: { type: 'string' as const } });

/** Headers present on all responses with a given status. */
const HEADERS: Readonly<Record<number, ZodOpenApiResponseObject['headers']>> = {
  401: { 'WWW-Authenticate': textHeader('Authentication challenge (RFC 6750).') },
  429: { 'Retry-After': textHeader('The number of seconds to wait before repeating the request.') },
  503: {
    'Retry-After': textHeader(
      'The number of seconds to wait before repeating the request, which is always safe to do.',
    ),
  },
};

const SENT_AFTER_TOKEN =
  'Responses that are sent before the token has been checked can only contain the item "address". If there is an address limit, "address" is always the first item.';

/** The definitions of all rate limit headers of the caller. */
export const RATE_LIMIT_HEADERS = {
  'RateLimit-Policy': textHeader(
    `The number of points (q) that the caller and the called account can use at once, and the number of seconds (w) after which all of them are available again, e.g. "caller";q=1000;w=10, "account";q=5000;w=10. ${SENT_AFTER_TOKEN}`,
  ),
  RateLimit: textHeader(
    `The number of remaining points (r), and the number of seconds until all points are available again (t), e.g. "caller";r=990;t=1, "account";r=4990;t=1. ${SENT_AFTER_TOKEN}`,
  ),
};

/** References to the shared definitions. */
export const RATE_LIMIT_REFERENCES = Object.fromEntries(
  Object.keys(RATE_LIMIT_HEADERS).map(name => [name, { $ref: `#/components/headers/${name}` as const }]),
);

/** The statuses that can only be sent before we have checked the token. */
const BEFORE_TOKEN: readonly number[] = [401, 408, 414, 417, 431];

/**
 * The headers included by ingress in a 429 `rate_limited`. The other responses of ingress do not have these headers.
 */
export const REFUSED_LIMIT_HEADERS = {
  'RateLimit-Policy': textHeader(
    'The limit that was reached: the maximum number of events (q) in a number of seconds (w) for an address, a key, or a workspace, e.g. "key";q=500;w=1. Only included for `rate_limited`.',
  ),
  RateLimit: textHeader(
    'The number of remaining events (r), and the number of seconds until all events are available again (t), e.g. "key";r=0;t=1. Only included for `rate_limited`.',
  ),
};

function headersOf(
  status: number,
  limited: boolean,
  ofRefusal: ZodOpenApiResponseObject['headers'],
): ZodOpenApiResponseObject['headers'] {
  if (ofRefusal !== undefined) return status === 429 ? { ...HEADERS[status], ...ofRefusal } : HEADERS[status];
  return limited && !BEFORE_TOKEN.includes(status) ? { ...HEADERS[status], ...RATE_LIMIT_REFERENCES } : HEADERS[status];
}

function byStatus(problems: readonly ProblemCode[]): [number, ProblemCode[]][] {
  return [...Map.groupBy(problems, code => PROBLEMS[code].status)].toSorted(([a], [b]) => a - b);
}

const describe = (codes: readonly ProblemCode[]) =>
  codes.map(code => `\`${code}\`: ${PROBLEMS[code].title}.`).join(' ');

/** ProblemResponses contains a response for each status. All operations that refer to a response share it. */
export interface ProblemResponses {
  readonly components: Record<string, ZodOpenApiResponseObject>;
  /**
   * Returns the references for an operation. A description lists the operation's codes in case the shared response has
   * more.
   */
  readonly of: (problems: readonly ProblemCode[]) => NonNullable<ZodOpenApiOperationObject['responses']>;
}

/**
 * Creates the shared responses for all `problems` in a document. By default, responses include the facade's rate limit
 * headers. If `ofRefusal` is set, these headers are only included in a 429.
 */
export function createProblemResponses(
  problems: Iterable<ProblemCode>,
  ofRefusal?: ZodOpenApiResponseObject['headers'],
): ProblemResponses {
  const codesOfAll = new Set(problems);
  const all = new Map(byStatus([...codesOfAll]));
  const shared = [...all].map(([status, codes]) => {
    const headers = headersOf(status, codesOfAll.has('rate_limited'), ofRefusal);
    const content = { [PROBLEM_CONTENT_TYPE]: { schema: ProblemSchema } };
    return [
      NAMES[status] as string,
      { description: describe(codes), ...(headers === undefined ? {} : { headers }), content },
    ];
  });
  return {
    components: Object.fromEntries(shared) as ProblemResponses['components'],
    of: own =>
      Object.fromEntries(
        byStatus(own).map(([status, codes]) => [
          `${status}`,
          {
            $ref: `#/components/responses/${NAMES[status]}`,
            ...(codes.length === all.get(status)?.length ? {} : { description: describe(codes) }),
          },
        ]),
      ),
  };
}
