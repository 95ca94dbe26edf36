import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { type Installation, install } from '../support/installation.ts';
import { kubectl } from '../support/world.ts';

const SAMPLES = join(import.meta.dirname, '..', '..', '..', 'config', 'samples');

let installed: Installation;

beforeAll(async () => {
  installed = await install();
  await installed.start();
  await kubectl(installed.cluster, ['apply', '-f', SAMPLES]);
});

afterAll(() => installed?.stop());

const run = (...args: string[]) => kubectl(installed.cluster, args);

describe('kubectl wait --for=condition=Ready', () => {
  it.each([
    ['account', 'acme', undefined],
    ['workspace', 'acme', undefined],
    ['catalogstream', 'orders', 'acme'],
    ['integration', 'globex', 'acme'],
    ['activation', 'globex-customer-42', 'acme'],
    ['subscription', 'acme-orders', 'globex'],
  ])('ends for %s/%s', async (kind, name, namespace) => {
    const where = namespace === undefined ? [] : ['-n', namespace];
    const reported = await run('wait', '--for=condition=Ready', `${kind}/${name}`, ...where, '--timeout=120s');
    expect(reported.trim()).toBe(`${kind}.sluice.dev/${name} condition met`);
  });

  it('ends for each condition', async () => {
    await run('wait', '--for=condition=Live', 'wsub/acme-orders', '-n', 'globex', '--timeout=120s');
    await run('wait', '--for=condition=Effective', 'actv/globex-customer-42', '-n', 'acme', '--timeout=120s');
    await run('wait', '--for=condition=Published', 'cstream/orders', '-n', 'acme', '--timeout=120s');
    await run('wait', '--for=condition=Accepted', 'intg/globex', '-n', 'acme', '--timeout=120s');
  });

  it('ends for Effective=false after the gate was closed', async () => {
    const patch = '{"spec":{"revoked":true}}';
    await run('patch', 'actv/globex-customer-42', '-n', 'acme', '--type=merge', '-p', patch);
    await run('wait', '--for=condition=Effective=false', 'actv/globex-customer-42', '-n', 'acme', '--timeout=120s');
    await run('patch', 'actv/globex-customer-42', '-n', 'acme', '--type=merge', '-p', '{"spec":{"revoked":null}}');
    await run('wait', '--for=condition=Effective', 'actv/globex-customer-42', '-n', 'acme', '--timeout=120s');
  });
});

/** The rows of a table as lists of cells, starting with the headers. Columns are separated by at least three spaces. */
async function table(...args: string[]): Promise<string[][]> {
  const lines = (await run('get', ...args)).trimEnd().split('\n');
  return lines.map(line => line.trimEnd().split(/\s{2,}/));
}

describe('kubectl get', () => {
  it.each([
    [['acct', 'acme'], 'NAME PLAN INSTANCE READY REASON AGE', 'acme Metered True LedgerReady'],
    [['wksp', 'acme'], 'NAME ACCOUNT PRODUCER PAUSED INSTANCE READY REASON AGE', 'acme acme true True NamespaceReady'],
    [
      ['wksp', 'globex'],
      'NAME ACCOUNT PRODUCER PAUSED INSTANCE READY REASON AGE',
      'globex globex false True NamespaceReady',
    ],
    [['cstream', '-n', 'acme'], 'NAME PUBLISHED READY REASON AGE', 'orders True True QueueReady'],
    [
      ['intg', '-n', 'acme'],
      'NAME ACCEPTED ADMITTED WORKSPACE READY REASON AGE',
      'globex DirectGrant True globex True Active',
    ],
    [
      ['actv', '-n', 'acme'],
      'NAME INTEGRATION GROUP KEY EFFECTIVE READY REASON AGE',
      'globex-customer-42 globex customer-42 True True GateOpen',
    ],
    [
      ['wsub', '-n', 'globex'],
      'NAME PRODUCER STREAM LIVE READY REASON LAST ATTEMPT DEAD BACKLOG AGE',
      'acme-orders acme orders True True Admitted false 0',
    ],
  ])('prints the columns of %j, including their values', async (args, header, cells) => {
    const print = async () => {
      const [head = [], ...rows] = await table(...args);
      return {
        header: head.join(' '),
        cells: rows.map(row => row.slice(0, -1).join(' ')),
        ages: rows.map(row => row.at(-1)),
      };
    };
    const expected = { header, cells: [cells], ages: [expect.stringMatching(/^\d+[smh]/)] };
    await expect.poll(print, { timeout: 60_000, interval: 500 }).toEqual(expected);
  });

  it('prints a paused workspace in wksp while the annotation is set', async () => {
    const paused = async () => {
      const [head, row] = await table('wksp', 'globex', '-o', 'wide');
      expect(head).toContain('PAUSED');
      return row?.includes('true', 3);
    };
    expect(await paused()).toBe(false);
    await run('annotate', 'wksp', 'globex', 'sluice.dev/paused=true');
    expect(await paused()).toBe(true);
    await run('annotate', 'wksp', 'globex', 'sluice.dev/paused-');
    expect(await paused()).toBe(false);
  });

  it('prints the reason why events are not delivered in the REASON column of wsub', async () => {
    const reason = async () => (await table('wsub', '-n', 'globex'))[1]?.[5];
    const suspend = (is: boolean) =>
      run('patch', 'wsub/acme-orders', '-n', 'globex', '--type=merge', '-p', `{"spec":{"suspended":${is}}}`);
    await suspend(true);
    await run('wait', '--for=condition=Live=false', 'wsub/acme-orders', '-n', 'globex', '--timeout=120s');
    expect(await reason()).toBe('Suspended');
    await suspend(false);
    await run('wait', '--for=condition=Live', 'wsub/acme-orders', '-n', 'globex', '--timeout=120s');
    expect(await reason()).toBe('Admitted');
  });

  it('lists all namespaced objects for waas -A, and the cluster-scoped objects for waas-admin', async () => {
    const kindsOf = async (...args: string[]) => {
      const names = (await run('get', ...args, '-o', 'name')).trim().split('\n');
      return new Set(names.map(name => name.split('.')[0]));
    };
    expect(await kindsOf('waas', '-A')).toEqual(
      new Set(['catalogstream', 'integration', 'activation', 'subscription']),
    );
    expect(await kindsOf('waas-admin')).toEqual(new Set(['workspace', 'account']));
  });

  it('prints the public ids for -o wide', async () => {
    const [head, row] = await table('cstream', '-n', 'acme', '-o', 'wide');
    expect(row?.[head?.indexOf('ID') ?? -1]).toMatch(/^cat_[0-9a-z]{20}$/);
  });
});

describe('kubectl explain', () => {
  it.each(Object.values(KINDS).map(({ singular }) => singular))('describes every field of %s.spec', async singular => {
    const text = await run('explain', `${singular}.spec`, '--recursive');
    const fields = [...text.matchAll(/^ {2}(\w+)\t/gm)].map(match => match[1] as string);
    expect(fields.length).toBeGreaterThan(0);
    for (const field of fields) {
      const explained = await run('explain', `${singular}.spec.${field}`);
      const description = /DESCRIPTION:\n([\s\S]*?)(?:\nFIELDS:|$)/.exec(explained)?.[1]?.trim() ?? '';
      expect(description.length, `${singular}.spec.${field}`).toBeGreaterThan(10);
    }
  });
});

describe('kubectl describe', () => {
  it('explains why an object is not ready', async () => {
    const manifest = { apiVersion: 'sluice.dev/v1alpha1', kind: 'Subscription' };
    const waiting = {
      ...manifest,
      metadata: { name: 'nothing', namespace: 'globex' },
      spec: { producer: 'acme', integration: 'other', stream: 'orders' },
    };
    await kubectl(installed.cluster, ['apply', '-f', '-'], JSON.stringify(waiting));
    await run('wait', '--for=condition=Ready=Unknown', 'wsub/nothing', '-n', 'globex', '--timeout=120s');
    const text = await run('describe', 'wsub/nothing', '-n', 'globex');
    expect(text).toContain('WaitingForGrant');
    expect(text).toContain('spec.workspace');
  });
});
