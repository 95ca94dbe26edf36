import { describe, expect, it } from 'vitest';
import { useNamespace } from '../../test/support/kubernetes/namespace.ts';
import { KubeError } from '../kube/kube-error.ts';
import { resourceOf } from '../kube/resource.ts';
import { CREDENTIAL_HEADERS, RESERVED_HEADER_PREFIXES, RESERVED_HEADERS } from './header-names.ts';

const { client, namespace } = useNamespace('header-names');
const RESERVED = [...RESERVED_HEADERS, ...RESERVED_HEADER_PREFIXES.flatMap(prefix => [prefix, `${prefix}anything`])];
const NO_NAMES = ['', 'a b', 'a:b', 'x-ä', 'x\r\ny', 'x\0', `x-${'y'.repeat(128)}`];
const PERMITTED = [...CREDENTIAL_HEADERS, 'X-Team', 'tracestate', 'accept', "!#$%&'*+-.^_`|~09"];

/** The error returned by the API server, or undefined if the name is accepted. */
async function refusal(kind: 'Subscription' | 'CatalogStream', spec: object): Promise<string | undefined> {
  const name = { namespace, name: 'tried' };
  try {
    await client.apply(resourceOf(kind), name, { spec }, { fieldManager: 'test', dryRun: true });
    return undefined;
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    return error.detail;
  }
}

describe('the API server, for a header of an endpoint', () => {
  const endpoint = (header: object) => ({
    producer: 'acme',
    integration: 'globex',
    stream: 'orders',
    endpoint: { url: 'https://globex.example/', headers: [header] },
  });
  const valueFrom = { secretKeyRef: { name: 'a', key: 'b' } };

  it.each(RESERVED)('refuses %s in any case, as a value and from a Secret', async name => {
    for (const header of [
      { name, value: 'x' },
      { name: name.toUpperCase(), valueFrom },
    ]) {
      expect(await refusal('Subscription', endpoint(header))).toMatch(
        /spec\.endpoint\.headers\[0\]\.name: .*a header that Sluice sets/,
      );
    }
  });

  it.each(NO_NAMES)('refuses the invalid name %j', async name => {
    expect(await refusal('Subscription', endpoint({ name, value: 'x' }))).toContain('spec.endpoint.headers[0].name');
  });

  it.each(PERMITTED)('accepts %s', async name => {
    expect(await refusal('Subscription', endpoint({ name, value: 'x' }))).toBeUndefined();
  });
});

describe('the API server, for a forwarded header', () => {
  const forwarding = (name: string) => ({ contextHeaders: { forward: [name] } });

  it.each([...RESERVED, ...CREDENTIAL_HEADERS])('refuses %s in any case', async name => {
    for (const each of [name, name.toUpperCase()]) {
      expect(await refusal('CatalogStream', forwarding(each))).toMatch(
        /spec\.contextHeaders\.forward\[0\]: .*must not name credentials/,
      );
    }
  });
});
