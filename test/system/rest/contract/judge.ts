import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { PROBLEM_CONTENT_TYPE, type ProblemDocument } from '../../../../src/core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../../../../src/core/problems/problems.ts';
import type { OpenApiDocument } from '../../../../src/facade/openapi.ts';
import type { Received, Sent } from './exchange.ts';
import type { Plan } from './requests.ts';

/** Compares responses with the document. */
export interface Judge {
  /** Returns all differences between a response and the document. Empty if there are none. */
  readonly faultsOf: (plan: Plan, sent: Sent, received: Received) => string[];
  /** Returns whether the document accepts a request's body. */
  readonly takesBody: (plan: Plan, json: unknown) => boolean;
}

/** Problems that the server returns before it has determined the route, or for all routes. */
const OUTSIDE: readonly ProblemCode[] = ['not_found', 'method_not_allowed'];

const escapePointer = (text: string) => encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1'));

export function createJudge(document: OpenApiDocument): Judge {
  const ajv = new Ajv2020({ strict: false, allErrors: false });
  addFormats.default(ajv);
  ajv.addSchema({ ...document, $id: 'document' });
  const compiled = new Map<string, ValidateFunction>();
  const schemaAt = (...words: string[]): ValidateFunction => {
    const $ref = `document#/${words.map(escapePointer).join('/')}`;
    let validate = compiled.get($ref);
    if (validate === undefined) compiled.set($ref, (validate = ajv.compile({ $ref })));
    return validate;
  };
  const isProblem = schemaAt('components', 'schemas', 'Problem');

  function parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  function problemFaults(received: Received, declared: readonly ProblemCode[] | undefined): string[] {
    const { status, headers, text } = received;
    const body = parse(text) as ProblemDocument;
    if (!isProblem(body)) return [`no problem document: ${text.slice(0, 300)}`];
    const kind = (PROBLEMS as Readonly<Record<string, { status: number; title: string }>>)[body.code];
    return [
      headers['content-type'] === PROBLEM_CONTENT_TYPE ? '' : `content type ${String(headers['content-type'])}`,
      kind === undefined ? `unknown code ${body.code}` : '',
      kind?.status === status && body.status === status ? '' : `${body.code} with status ${status} and ${body.status}`,
      kind?.title === body.title ? '' : `title ${body.title}`,
      body.type === `/problems/${body.code}` ? '' : `type ${body.type}`,
      declared === undefined || declared.includes(body.code) || OUTSIDE.includes(body.code)
        ? ''
        : `${status} ${body.code} is not declared`,
    ];
  }

  function headerFaults({ status, headers }: Received): string[] {
    return [
      status === 401 && headers['www-authenticate'] === undefined ? '401 without WWW-Authenticate' : '',
      (status === 429 || status === 503) && !/^\d+$/.test(String(headers['retry-after']))
        ? `${status} without Retry-After`
        : '',
      status === 405 && headers['allow'] === undefined ? '405 without Allow' : '',
      headers['x-injected'] === undefined ? '' : 'a header was injected',
    ];
  }

  function successFaults(plan: Plan, { status, headers, text }: Received): string[] {
    const response = plan.operation.responses[status];
    if (response === undefined) return [`status ${status} is not declared`];
    if (response.content === undefined)
      return [text === '' ? '' : `a body where none is declared: ${text.slice(0, 100)}`];
    // A resource that was not created does not have a location.
    const declared = status === 201 ? Object.keys(response.headers ?? {}) : [];
    const missing = declared.filter(name => headers[name.toLowerCase()] === undefined);
    const words = ['paths', plan.template, plan.method.toLowerCase(), 'responses', `${status}`, 'content'];
    const validate = schemaAt(...words, 'application/json', 'schema');
    return [
      headers['content-type']?.toString().startsWith('application/json')
        ? ''
        : `content type ${String(headers['content-type'])}`,
      missing.length === 0 ? '' : `without ${missing.join()}`,
      validate(parse(text)) ? '' : `body: ${ajv.errorsText(validate.errors)}: ${text.slice(0, 300)}`,
    ];
  }

  return {
    faultsOf(plan, _sent, received) {
      const { status } = received;
      if (status === 0) return ['no answer'];
      const server = status >= 500 ? [`${status}: ${received.text.slice(0, 300)}`] : [];
      // There is no operation for a wrong method, and an unusual path may belong to a different operation.
      const elsewhere = plan.aim === 'other method' || plan.aim === 'strange path';
      if (plan.method === 'HEAD') return [...server, ...headerFaults(received)].filter(fault => fault !== '');
      const declared = plan.operation['x-problem-codes'];
      const body =
        status >= 400
          ? problemFaults(received, elsewhere ? undefined : declared)
          : elsewhere
            ? []
            : successFaults(plan, received);
      return [...server, ...headerFaults(received), ...body].filter(fault => fault !== '');
    },
    takesBody(plan, json) {
      if (plan.operation.requestBody === undefined) return json === undefined;
      if (json === undefined) return !plan.operation.requestBody.required;
      const words = ['paths', plan.template, plan.method.toLowerCase(), 'requestBody', 'content', 'application/json'];
      return schemaAt(...words, 'schema')(json);
    },
  };
}
